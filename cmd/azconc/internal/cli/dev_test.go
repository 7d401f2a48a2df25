package cli

import "testing"

func TestDevRunFlags(t *testing.T) {
	checkFlags(t, newDevRunCmd, []flagCase[devRunOptions]{
		{args: []string{"--", "go", "test", "-o", "json"}, want: devRunOptions{Command: []string{"go", "test", "-o", "json"}}},
		{args: []string{"go", "test", "-o", "json"}, want: devRunOptions{Command: []string{"go", "test", "-o", "json"}}},
		{args: []string{"--timeout", "1m", "--", "--odd", "--"}, want: devRunOptions{Command: []string{"--odd", "--"}}},
		{args: nil, err: "<command> is missing"},
		{args: []string{"--"}, err: "<command> is missing"},
		{args: []string{"-o", "json", "--", "true"}, err: "cannot both go to stdout"},
	})
}

func TestDevUpFlags(t *testing.T) {
	checkFlags(t, newDevUpCmd, []flagCase[devUpOptions]{
		{args: nil, want: devUpOptions{}},
		{args: []string{"--location", "data", "--default-ports", "-o", "json"}, want: devUpOptions{Location: "data", DefaultPorts: true}},
		{args: []string{"data"}, err: "unexpected argument"},
	})
}

func TestDevInstallFlags(t *testing.T) {
	checkFlags(t, newDevInstallCmd, []flagCase[devInstallOptions]{
		{args: nil, want: devInstallOptions{}},
		{args: []string{"3.35.0"}, err: "unexpected argument"},
	})
}

func TestACommandIsNotToldOfAnotherAccount(t *testing.T) {
	env := withoutAccount(Env{"PATH=/bin", "AZURE_STORAGE_ACCOUNT=production", "AZURE_STORAGE_KEY=x", "AZURE_TENANT_ID=y", "azure_storage=z"})
	if len(env) != 3 || env[0] != "PATH=/bin" || env[1] != "AZURE_TENANT_ID=y" {
		t.Errorf("the command's environment is %q, want it without the account's variables", env)
	}
}
