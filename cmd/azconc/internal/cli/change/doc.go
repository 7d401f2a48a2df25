// Package change makes new content from old: by a command, a jq expression, assignments, a file, or an editor with a three-way merge.
package change
