"""One module per codemod, and the campaign: the literal, ordered tuple of them."""
