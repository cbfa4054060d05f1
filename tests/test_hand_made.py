"""Executors that keep plain channels, as the hand-made change has them: what was taken back of it since is named."""

from __future__ import annotations

import pytest

from refactor_tool.codemods.cancel_safe_waits import CODEMOD
from refactor_tool.engine import find
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import File, Manual, Snapshot

INTERFACE = """package executor

import "context"

type Executor interface {
	Bootstrap(ctx context.Context) error
	Kubelet(ctx context.Context, args []string) error
	ETCD(ctx context.Context, test func() error) error
	CRI(ctx context.Context) error
	APIServerReadyChan() <-chan struct{}
	ETCDReadyChan() <-chan struct{}
	CRIReadyChan() <-chan struct{}
}
"""
EMBED = """package embed

import (
	"context"

	"example.org/k3s/pkg/daemons/executor"
	"example.org/k3s/pkg/util"
)

var _ executor.Executor = &Embedded{}

type Embedded struct {
	apiServerReady <-chan struct{}
	etcdReady      chan struct{}
	criReady       chan struct{}
}

func (e *Embedded) Bootstrap(ctx context.Context) error {
	e.apiServerReady = util.APIServerReadyChan(ctx)
	e.etcdReady = make(chan struct{})
	e.criReady = make(chan struct{})
	return nil
}

func (e *Embedded) Kubelet(ctx context.Context, args []string) error {
	go func() {
		<-e.APIServerReadyChan()
		run(args)
	}()
	return nil
}

func (e *Embedded) ETCD(ctx context.Context, test func() error) error {
	go func() {
		if test() == nil {
			close(e.etcdReady)
		}
	}()
	return nil
}

func (e *Embedded) CRI(ctx context.Context) error {
	return util.CloseIfNil(start(ctx), e.criReady)
}

func (e *Embedded) APIServerReadyChan() <-chan struct{} {
	if e.apiServerReady == nil {
		panic("executor not bootstrapped")
	}
	return e.apiServerReady
}

func (e *Embedded) ETCDReadyChan() <-chan struct{} { return e.etcdReady }

func (e *Embedded) CRIReadyChan() <-chan struct{} { return e.criReady }
"""


def named(embed: str) -> list[str]:
    """Return what the last step leaves to a person in a tree with this executor."""
    files = {
        "go.mod": "module example.org/k3s\n\ngo 1.24\n",
        "pkg/daemons/executor/executor.go": INTERFACE,
        "pkg/executor/embed/embed.go": embed,
        "pkg/util/api.go": "package util\n",
    }
    tree = Tree(Snapshot({path: File(text.encode()) for path, text in files.items()}))
    return [found.verdict.reason for found in find(tree, CODEMOD) if isinstance(found.verdict, Manual)]


def test_nothing_is_wrong_with_it_as_it_is() -> None:
    assert named(EMBED) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param("close(e.etcdReady)", "run(nil)", "nothing closes Embedded.etcdReady", id="a close"),
        pytest.param("close(e.etcdReady)", "e.etcdReady <- struct{}{}", "nothing closes Embedded.etcdReady", id="sent"),
        pytest.param(", e.criReady)", ", nil)", "nothing closes Embedded.criReady", id="a close by somebody else"),
        pytest.param(
            "= util.APIServerReadyChan(ctx)",
            "= make(chan struct{})",
            "nothing closes Embedded.apiServerReady",
            id="a poll",
        ),
        pytest.param(
            "{ return e.criReady }",
            "{ return e.etcdReady }",
            "(*Embedded).CRIReadyChan gives out the channel of ETCDReadyChan",
            id="swapped",
        ),
        pytest.param("		<-e.APIServerReadyChan()\n", "", "(*Embedded).Kubelet waits for nothing", id="a wait"),
    ],
)
def test_what_was_taken_back_is_named(old: str, new: str, told: str) -> None:
    assert EMBED.count(old) == 1
    assert any(told in reason for reason in named(EMBED.replace(old, new)))
