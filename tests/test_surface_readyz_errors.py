"""Step 1 decides by the parts of the poll: what it carries over, what it replaces, and what it leaves to a person."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from refactor_tool.codemods.surface_readyz_errors import CODEMOD
from refactor_tool.engine import find
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Finding, Leave, Manual, Rewrite
from refactor_tool.world.tree import read_ref
from tests import gotree

API = "pkg/util/api.go"
SOURCE = """package util

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rancher/wrangler/v3/pkg/merr"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

func WaitForAPIServerReady(ctx context.Context, file string, limit time.Duration) error {
	var last error
	cfg, err := load(file)
	if err != nil {
		return err
	}
	cfg.Burst = 1
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, limit, true, func(ctx context.Context) (bool, error) {
		code := 0
		reply := client.Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if failure := reply.Error(); failure != nil {
			last = failure
			return false, nil
		}
		if code != http.StatusOK {
			text, _ := reply.Raw()
			last = errors.New(string(text))
			logrus.Warn("not yet")
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return merr.NewErrors(err, last)
	}
	return nil
}
"""


def verdict(source: str, **others: str) -> Rewrite | Manual | Leave:
    tree = gotree.tree(pkg__util__api=source, **others)
    return wait_finding(tree).verdict


def wait_finding(tree: Tree) -> Finding:
    (found,) = (found for found in find(tree, CODEMOD) if found.anchor == "wait-for-apiserver-ready")
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("last", "problem", id="renamed-local"),
        pytest.param("\tvar last error\n", "\tvar last error\n\t// read it\n", id="comment-before-the-set-up"),
        pytest.param("\tcfg.Burst = 1\n", "", id="no-set-up-of-its-own"),
        pytest.param("cfg.Burst = 1", 'logrus.Infof("using %s", file)', id="log-line-in-the-set-up"),
        pytest.param("cfg.Burst = 1", "cfg.Burst = 1 // polite", id="comment-in-the-set-up"),
        pytest.param("time.Second,", "2*time.Second,", id="interval-with-an-operator"),
        pytest.param("time.Second,", "pause,", id="interval-of-the-package"),
        pytest.param("merr.NewErrors", "other.NewErrors", id="alias-of-the-joined-error"),
        pytest.param("file string, limit", "file string,\n\tlimit", id="signature-over-two-lines"),
        pytest.param("wait.PollUntil", "polls.PollUntil", id="alias-of-the-poll"),
    ],
)
def test_the_known_poll_is_replaced(old: str, new: str) -> None:
    source = SOURCE.replace(old, new)
    for name, package in (("polls", "wait"), ("other", "merr")):
        if f"{name}." in source:
            source = re.sub(rf'\t("[^"]*/{package}")', rf"\t{name} \1", source)
    assert source != SOURCE
    assert isinstance(verdict(source), Rewrite)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("last = failure\n", "last = failure\n\t\t\tcount++\n", "not known", id="statement-in-the-check"),
        pytest.param('logrus.Warn("not yet")', "notify()", "not known", id="no-log-line-in-the-check"),
        pytest.param('"/readyz"', '"/healthz"', "not known", id="another-path"),
        pytest.param(".Do(ctx)", ".Do(context.TODO())", "not known", id="another-context"),
        pytest.param(
            "last = failure\n\t\t\treturn false", "last = failure\n\t\t\treturn true", "not known", id="gives-up"
        ),
        pytest.param("code != http.StatusOK", "code == http.StatusOK", "not known", id="swapped-branches"),
        pytest.param("code != http.StatusOK", "code != 204", "not known", id="another-status"),
        pytest.param("return merr.NewErrors(err, last)", "return last", "not known", id="another-error"),
        pytest.param("return nil\n}\n", "return last\n}\n", "not known", id="another-end"),
        pytest.param("limit, true,", "limit, false,", "not known", id="polls-late"),
        pytest.param("time.Second, limit", "time.Second, 2*limit", "not known", id="another-limit"),
        pytest.param("time.Second,", "limit/10,", "not known", id="interval-of-the-call"),
        pytest.param("time.Second,", "2*2*time.Second,", "not known", id="interval-with-two-operators"),
        pytest.param("wait.PollUntilContextTimeout", "wait.PollUntil", "not known", id="another-poll"),
        pytest.param("wait.PollUntil", "mine.PollUntil", "not known", id="poll-of-another-package"),
        pytest.param("rest.RESTClientFor(cfg)", "dial(cfg)", "not known", id="another-client"),
        pytest.param("cfg.Burst = 1", "cfg.Timeout = time.Minute", "not known", id="request-timeout-of-its-own"),
        pytest.param("cfg.Burst = 1", "log(ctx)", "not known", id="set-up-needs-the-context"),
        pytest.param("cfg.Burst = 1", "pkgerrors := 1", "pkg/errors cannot be named", id="shadowed-package-of-errors"),
        pytest.param("cfg.Burst = 1", "for retry() {\n\t}", "not known", id="loop-in-the-set-up"),
        pytest.param("return err\n\t}\n\tcfg", "return last\n\t}\n\tcfg", "not known", id="guard-of-another-error"),
        pytest.param("\tcode := 0", "\t// ask\n\t\tcode := 0", "would be lost: // ask", id="comment-in-the-check"),
        pytest.param(
            "\tvar last error", "\t// keep\n\tvar last error", "would be lost: // keep", id="comment-at-the-start"
        ),
        pytest.param(
            "var last error", "var last error // kept", "would be lost: // kept", id="comment-beside-the-start"
        ),
        pytest.param(
            "\treturn nil\n}", "\t// fine\n\treturn nil\n}", "would be lost: // fine", id="comment-at-the-end"
        ),
        pytest.param("\tvar last error\n", "", "is not the set-up", id="no-last-error"),
        pytest.param("file string", "client rest.Interface", "takes a client", id="client-parameter"),
        pytest.param("Duration) error {", "Duration) (failed error) {", "does not take", id="named-result"),
        pytest.param("time.Duration) error {", "time.Duration) {", "does not take", id="no-result"),
        pytest.param('"github.com/sirupsen', '_ "github.com/sirupsen', "not known", id="blank-import"),
        pytest.param("func Wait", "func fmt() {}\n\nfunc Wait", "fmt cannot be named", id="name-taken-by-a-function"),
        pytest.param("func Wait", "func checkReadyz() {}\n\nfunc Wait", "declares checkReadyz", id="half-done"),
    ],
)
def test_a_poll_of_another_shape_is_for_a_person(old: str, new: str, words: str) -> None:
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    found = verdict(source)
    assert isinstance(found, Manual)
    assert words in found.reason
    assert found.blocks
    assert found.instruction


def test_reading_the_reply_is_recognised_through_functions_of_the_package_only() -> None:
    by_helper = (
        "package util\n\nfunc WaitForAPIServerReady() error { return poll() }\n\nfunc poll() error { return ask() }\n"
    )
    reads = "package util\n\nfunc ask() error { _, err := c.Get().DoRaw(ctx); return err }\n"
    other = "package other\n\nfunc poll() error { return c.DoRaw() }\n"

    assert verdict(by_helper, pkg__util__ask=reads) == Leave(
        "it reads the reply to /readyz and tells what is in it already", done=True
    )
    assert isinstance(verdict(by_helper, pkg__other__poll=other), Manual)


def test_no_test_file_is_written_over_or_beside_tests_of_the_same_names() -> None:
    def created(**others: str) -> set[str]:
        found = verdict(SOURCE, **others)
        assert isinstance(found, Rewrite)
        return {change.path for change in found.changes} - {API}

    taken = "package util\n"
    assert created() == {"pkg/util/api_test.go"}
    assert created(pkg__util__api_test=taken) == {"pkg/util/readyz_test.go"}
    assert created(pkg__util__api_test=taken, pkg__util__readyz_test=taken) == set()
    assert created(pkg__util__other_test="package util\n\nfunc infoLines() {}\n") == set()


@pytest.mark.parametrize("ref", ["before/issue", "before/issue-parent", "before/pr-base", "older/v1.30", "older/v1.26"])
def test_the_function_is_rewritten_on_real_trees(corpus: Path, ref: str) -> None:
    assert isinstance(wait_finding(Tree(read_ref(corpus / "k3s.git", ref))).verdict, Rewrite)


@pytest.mark.parametrize("ref", ["during/readyz", "during/tests", "after/etcd", "later/2025-06", "later/2026-04"])
def test_upstreams_way_is_done_on_real_trees(corpus: Path, ref: str) -> None:
    found = wait_finding(Tree(read_ref(corpus / "k3s.git", ref))).verdict
    assert isinstance(found, Leave)
    assert found.done
