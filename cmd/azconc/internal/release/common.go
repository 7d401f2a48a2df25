package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/root"
)

// common is what every archive and package contains beside the binary, by path below the archive's folder.
func (r *release) common(ctx context.Context) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for name, path := range map[string]string{"README.md": "README.md", "LICENSE": "LICENSE", "CHANGELOG.md": ".github/CHANGELOG.md"} {
		data, err := r.in(ctx, r.source, "git", "show", "HEAD:"+path) // as committed, whatever the line ends of the checkout
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	if err := r.completions(files); err != nil {
		return nil, err
	}
	return files, r.manual(files)
}

// completionNames are the names under which the shells look for the scripts.
var completionNames = map[string]string{"bash": "azconc", "zsh": "_azconc", "fish": "azconc.fish", "powershell": "azconc.ps1"}

func (r *release) completions(files map[string][]byte) error {
	for shell, name := range completionNames {
		var script bytes.Buffer
		if err := root.Completion(&script, shell); err != nil {
			return fmt.Errorf("completion for %s: %w", shell, err)
		}
		files["completions/"+shell+"/"+name] = script.Bytes()
	}
	return nil
}

// manual makes a page of each command's help.
func (r *release) manual(files map[string][]byte) error { return r.pages(files, root.Documented()) }

// pages makes the page of a command, and those of the commands below it.
func (r *release) pages(files map[string][]byte, cmd *cobra.Command) error {
	escape(cmd)
	var page bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Date: &r.time, Source: "azconc " + r.number(), Manual: "azconc"}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return err
	}
	files["man/"+strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"] = page.Bytes()
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := r.pages(files, sub); err != nil {
			return err
		}
	}
	return nil
}

// escape keeps what a help text says: the pages are rendered from Markdown, where <name> is an element of HTML and disappears, and
// __loc__ is loc in bold.
// Indented lines are code, in which nothing is escaped.
func escape(cmd *cobra.Command) {
	cmd.Use = escapeLine(cmd.Use)
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[i] = escapeLine(line)
		}
	}
	cmd.Long = strings.Join(lines, "\n")
}

func escapeLine(line string) string {
	return strings.NewReplacer("<", `\<`, "_", `\_`, "*", `\*`).Replace(line)
}
