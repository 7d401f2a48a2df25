// Package change makes new content from old: by a command, a jq expression, assignments, a file, or an editor.
package change
