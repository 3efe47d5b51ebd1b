"""Where rows go: trees packed for the walk down, and the walk."""
