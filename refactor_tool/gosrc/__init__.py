"""All knowledge of Go syntax. The only importer of tree_sitter; gives out plain values (`ast`) through few doors.

- `tree.Tree`: facts about a snapshot: declarations, what names mean, occurrences, implementers, imports.
- `layout`: where edits go so that the result is laid out as gofmt would.
- `proof.prove`: what a change made worse, without a Go toolchain.
"""
