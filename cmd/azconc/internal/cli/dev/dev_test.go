package dev

import (
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestDevRunFlags(t *testing.T) {
	clitest.CheckFlags(t, runVerb(), []clitest.FlagCase[runOptions]{
		{Args: []string{"--", "go", "test", "-o", "json"}, Want: runOptions{Command: []string{"go", "test", "-o", "json"}}},
		{Args: []string{"go", "test", "-o", "json"}, Want: runOptions{Command: []string{"go", "test", "-o", "json"}}},
		{Args: []string{"--timeout", "1m", "--", "--odd", "--"}, Want: runOptions{Command: []string{"--odd", "--"}}},
		{Args: nil, Err: "<command> is missing"},
		{Args: []string{"--"}, Err: "<command> is missing"},
		{Args: []string{"-o", "json", "--", "true"}, Err: "cannot both go to stdout"},
	})
}

func TestDevUpFlags(t *testing.T) {
	clitest.CheckFlags(t, upVerb(), []clitest.FlagCase[upOptions]{
		{Args: nil, Want: upOptions{}},
		{Args: []string{"--location", "data", "--default-ports", "-o", "json"}, Want: upOptions{Location: "data", DefaultPorts: true}},
		{Args: []string{"data"}, Err: "unexpected argument"},
	})
}

func TestDevInstallFlags(t *testing.T) {
	clitest.CheckFlags(t, installVerb(), []clitest.FlagCase[installOptions]{
		{Args: nil, Want: installOptions{}},
		{Args: []string{"3.35.0"}, Err: "unexpected argument"},
	})
}

func TestACommandDoesNotSeeAnotherAccount(t *testing.T) {
	env := withoutAccount(cli.Env{"PATH=/bin", "AZURE_STORAGE_ACCOUNT=production", "AZURE_STORAGE_KEY=x", "AZURE_TENANT_ID=y", "azure_storage=z"})
	if len(env) != 3 || env[0] != "PATH=/bin" || env[1] != "AZURE_TENANT_ID=y" {
		t.Errorf("the command's environment is %q, want it without the account's variables", env)
	}
}
