module refactor-tool/verify

go 1.21
