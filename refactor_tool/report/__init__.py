"""Everything a plan is shown as; pure functions from the model to text, none may filter what was found."""
