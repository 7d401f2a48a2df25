package dev

import (
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/pkg/aztest"
)

var memory = engine.Options{Engine: engine.Memory}

func TestDevRunFlags(t *testing.T) {
	clitest.CheckFlags(t, runVerb(), []clitest.FlagCase[runOptions]{
		{Args: []string{"--", "go", "test", "-o", "json"}, Want: runOptions{Engine: memory, Command: []string{"go", "test", "-o", "json"}}},
		{Args: []string{"go", "test", "-o", "json"}, Want: runOptions{Engine: memory, Command: []string{"go", "test", "-o", "json"}}},
		{Args: []string{"--timeout", "1m", "--", "--odd", "--"}, Want: runOptions{Engine: memory, Command: []string{"--odd", "--"}}},
		{Args: []string{"--engine", "azurite", "--", "true"}, Want: runOptions{Engine: engine.Options{Engine: engine.Azurite}, Command: []string{"true"}}},
		{Args: []string{"--faults", "lose-answer=5%,slow=0.1:2s", "--faults-seed", "7", "true"}, Want: runOptions{Command: []string{"true"}, Engine: engine.Options{
			Engine: engine.Memory, Seed: 7, Faults: []aztest.Fault{
				{Kind: aztest.LoseAnswer, Probability: 0.05}, {Kind: aztest.Slow, Probability: 0.1, Delay: 2 * time.Second},
			}}}},
		{Args: nil, Err: "<command> is missing"},
		{Args: []string{"--"}, Err: "<command> is missing"},
		{Args: []string{"-o", "json", "--", "true"}, Err: "cannot both go to stdout"},
		{Args: []string{"--engine", "cosmos", "true"}, Err: `--engine "cosmos" is neither memory nor azurite`},
		{Args: []string{"--faults", "loss=5%", "true"}, Err: `--faults: "loss" is no kind of fault: give one of lose-answer, `},
		{Args: []string{"--engine", "azurite", "--faults", "hang=5%", "true"}, Err: "--faults are those of the service in memory"},
	})
}

func TestDevUpFlags(t *testing.T) {
	clitest.CheckFlags(t, upVerb(), []clitest.FlagCase[upOptions]{
		{Args: nil, Want: upOptions{Engine: memory}},
		{Args: []string{"--location", "data", "--default-ports", "-o", "json"}, Want: upOptions{Engine: engine.Options{Engine: engine.Azurite, Location: "data", DefaultPorts: true}}},
		{Args: []string{"--accounts", "one,two"}, Want: upOptions{Engine: engine.Options{Engine: engine.Memory, Accounts: []string{"one", "two"}}}},
		{Args: []string{"--faults", "hang=1%@Put Blobs"}, Err: `"Put Blobs" is no operation`},
		{Args: []string{"--engine", "memory", "--location", "data"}, Err: "--location data keeps data, and the service in memory keeps none"},
		{Args: []string{"--accounts", "Shop"}, Err: `--accounts "Shop" is not 3 to 24 lower-case letters and digits`},
		{Args: []string{"--accounts", "one,one"}, Err: "--accounts: one is there twice"},
		{Args: []string{"data"}, Err: "unexpected argument"},
	})
}

func TestACommandDoesNotSeeAnotherAccount(t *testing.T) {
	env := withoutAccount(cli.Env{"PATH=/bin", "AZURE_STORAGE_ACCOUNT=production", "AZURE_STORAGE_KEY=x", "AZURE_TENANT_ID=y", "azure_storage=z"})
	if len(env) != 3 || env[0] != "PATH=/bin" || env[1] != "AZURE_TENANT_ID=y" {
		t.Errorf("the command's environment is %q, want it without the account's variables", env)
	}
}
