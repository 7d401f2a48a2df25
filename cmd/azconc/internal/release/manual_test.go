package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/root"
)

var placeholder = regexp.MustCompile(`<[a-z][^>]*>`)

// The pages lost every placeholder: 172 of 172 synopses.
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
		if strings.Contains(page, `\e<`) || strings.Contains(page, `\\<`) {
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
