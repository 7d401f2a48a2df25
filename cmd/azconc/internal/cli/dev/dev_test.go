package dev

import (
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestUsage(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: []string{"run"}, Err: "<command> is missing"},
		{Args: []string{"run", "--"}, Err: "<command> is missing"},
		{Args: []string{"run", "-o", "json", "--", "true"}, Err: "-o json does not apply to azconc dev run"},
		{Args: []string{"run", "--engine", "cosmos", "true"}, Err: `--engine "cosmos" is neither memory nor azurite`},
		{Args: []string{"run", "--faults", "loss=5%", "true"}, Err: `--faults: "loss" is no kind of fault: give one of lose-answer, `},
		{Args: []string{"run", "--engine", "azurite", "--faults", "hang=5%", "true"}, Err: "--faults are those of the service in memory"},
		{Args: []string{"up", "--faults", "hang=1%@Put Blobs"}, Err: `"Put Blobs" is no operation`},
		{Args: []string{"up", "--engine", "memory", "--location", "data"}, Err: "--location data keeps data, and the service in memory keeps none"},
		{Args: []string{"up", "data"}, Err: "unexpected argument"},
	})
}

func TestACommandDoesNotSeeAnotherAccount(t *testing.T) {
	env := withoutAccount(cli.Env{"PATH=/bin", "AZURE_STORAGE_ACCOUNT=production", "AZURE_STORAGE_KEY=x", "AZURE_TENANT_ID=y", "azure_storage=z"})
	if len(env) != 3 || env[0] != "PATH=/bin" || env[1] != "AZURE_TENANT_ID=y" {
		t.Errorf("the command's environment is %q, want it without the account's variables", env)
	}
}
