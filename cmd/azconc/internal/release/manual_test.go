package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/root"
)

// marked is a word that has what Markdown takes for its own.
var marked = regexp.MustCompile("[^\\s,.;:]*[_*`\\[\\]&~][^\\s,.;:]*")

var placeholder = regexp.MustCompile(`<[a-z][^>]*>`)

// The pages lost every placeholder: 172 of 172 synopses. They showed jq's $__loc__ as $loc in bold, and so each word with two such marks.
func TestTheManualKeepsThePlaceholdersOfTheHelp(t *testing.T) {
	files := map[string][]byte{}
	if err := new(release).manual(files); err != nil {
		t.Fatal(err)
	}
	found := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		page := strings.ReplaceAll(string(files["man/"+strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"]), `\-`, "-")
		for _, name := range placeholder.FindAllString(cmd.UseLine()+cmd.Long+cmd.Example, -1) {
			found++
			if cmd.Runnable() && !strings.Contains(page, name) {
				t.Errorf("the page of %s lacks %s", cmd.CommandPath(), name)
			}
		}
		words := marked.FindAllString(cmd.Long, -1)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			words = append(append(words, marked.FindAllString(usage, -1)...), placeholder.FindAllString(usage, -1)...)
		})
		for _, word := range words {
			if cmd.Runnable() && !strings.Contains(strings.ReplaceAll(page, `\e`, `\`), word) {
				t.Errorf("the page of %s lacks %s", cmd.CommandPath(), word)
			}
		}
		if strings.Contains(page, `\e<`) || strings.Contains(page, `\\<`) || strings.Contains(page, `\e_`) {
			t.Errorf("the page of %s shows what escapes", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(root.Documented())
	if found < 150 {
		t.Errorf("%d placeholders were found", found)
	}
}
