package tf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

const (
	http    = "terraform {\n  backend \"http\" {}\n}\n"
	azurerm = "terraform {\n  backend \"azurerm\" {\n    container_name = \"tfstate\"\n    key = \"prod\"\n  }\n}\n"
)

func TestWhichDirectoriesTakeTheirBackendFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   map[string]string
		command string
		env     map[string]string
		says    string // in the text or the hint; "" if it is accepted
	}{
		{"http", map[string]string{"main.tf": http}, "terraform apply", nil, ""},
		{"http with other attributes", map[string]string{"main.tf": "terraform {\n backend \"http\" {\n retry_max = 5 # address = \n address = null\n}\n}"}, "terraform apply", nil, ""},
		{"http in JSON", map[string]string{"main.tf.json": `{"terraform":[{"backend":{"http":{"address":null}}}]}`}, "tofu apply", nil, ""},
		{"http after tricky text", map[string]string{"a.tf": "# terraform { backend \"s3\" {} }\n/* terraform { */ locals {\n x = \"}${jsonencode({a = \"}\"})} $${ \\\" {\"\n y = <<-EOT\n terraform { backend \"s3\" {\n EOT\n z = [for k, v in {} : \"${k}\"]\n}\n" + http}, "terraform apply", nil, ""},
		{"no configuration", nil, "terraform version", nil, ""},
		{"no backend", map[string]string{"main.tf": "resource \"terraform_data\" \"x\" {\n backend {}\n}"}, "terraform apply", nil, `{"terraform":{"backend":{"http":{}}}}`},
		{"azurerm", map[string]string{"main.tf": azurerm}, "terraform apply", nil, "TF_DATA_DIR=.terraform-azconc"},
		{"cloud", map[string]string{"main.tf": "terraform {\n cloud {\n }\n}"}, "terraform apply", nil, `"cloud"`},
		{"azurerm overridden", map[string]string{"main.tf": azurerm, "azconc_override.tf": http}, "terraform apply", map[string]string{"TF_DATA_DIR": ".tf2"}, ""},
		{"azurerm overridden in JSON", map[string]string{"main.tf": azurerm, "override.tf.json": `{"terraform":{"backend":{"http":{}}}}`}, "terraform apply", map[string]string{"TF_DATA_DIR": ".tf2"}, ""},
		{"azurerm overridden in its own data directory", map[string]string{
			"main.tf": azurerm, "azconc_override.tf": http, ".terraform/terraform.tfstate": `{"backend":{"type":"azurerm","config":{"container_name":"tfstate","key":"prod"}}}`,
		}, "terraform init", nil, "TF_DATA_DIR=.terraform-azconc"},
		{"azurerm overridden, with another workspace selected there", map[string]string{
			"main.tf": azurerm, "azconc_override.tf": http, ".terraform/environment": "eu", ".terraform/terraform.tfstate": `{"backend":{"type":"azurerm","config":{"container_name":"tfstate","key":"prod"}}}`,
		}, "terraform plan", map[string]string{"TF_DATA_DIR": ".tf2"}, "give tfstate/prodenv:eu"},
		{"azurerm overridden, with the default workspace selected there", map[string]string{
			"main.tf": azurerm, "azconc_override.tf": http, ".terraform/environment": "default", ".terraform/terraform.tfstate": `{"backend":{"type":"azurerm","config":{"container_name":"tfstate","key":"prod"}}}`,
		}, "terraform plan", map[string]string{"TF_DATA_DIR": ".tf2"}, ""},
		{"azurerm overridden, with another workspace of another state there", map[string]string{
			"main.tf": azurerm, "azconc_override.tf": http, ".terraform/environment": "eu", ".terraform/terraform.tfstate": `{"backend":{"type":"azurerm","config":{"container_name":"tfstate","key":"test"}}}`,
		}, "terraform plan", map[string]string{"TF_DATA_DIR": ".tf2"}, ""},
		{"migration from another azurerm blob", map[string]string{
			"main.tf": http, ".terraform/terraform.tfstate": `{"backend":{"type":"azurerm","config":{"container_name":"old","key":"prod"}}}`,
		}, "terraform init -migrate-state", nil, ""},
		{"an address in the block", map[string]string{"main.tf": "terraform {\n backend \"http\" {\n lock_address = \"http://x\"\n }\n}"}, "terraform apply", nil, "lock_address"},
		{"an address in JSON", map[string]string{"main.tf.json": `{"terraform":{"backend":[{"http":[{"address":"http://x"}]}]}}`}, "terraform apply", nil, "sets address"},
		{"a stored address", map[string]string{"main.tf": http, ".terraform/terraform.tfstate": `{"backend":{"type":"http","config":{"address":"http://x","password":null}}}`}, "terraform plan", nil, "-reconfigure"},
		{"a stored password elsewhere", map[string]string{"main.tf": http, "d/terraform.tfstate": `{"backend":{"type":"http","config":{"password":"x"}}}`}, "terraform plan", map[string]string{"TF_DATA_DIR": "d"}, "holds password"},
		{"a stored address, init again", map[string]string{"main.tf": http, ".terraform/terraform.tfstate": `{"backend":{"type":"http","config":{"address":"http://x"}}}`}, "terraform init -reconfigure", nil, ""},
		{"nothing stored", map[string]string{"main.tf": http, ".terraform/terraform.tfstate": `{"backend":{"type":"http","config":{"address":null,"password":null}}}`}, "terraform plan", nil, ""},
		{"a workspace", map[string]string{"main.tf": http}, "terraform plan", map[string]string{"TF_WORKSPACE": "eu"}, "tfstate/prodenv:eu"},
		{"the default workspace", map[string]string{"main.tf": http}, "terraform plan", map[string]string{"TF_WORKSPACE": "default"}, ""},
		{"a stored workspace", map[string]string{"main.tf": http, ".terraform/environment": "eu\n"}, "terraform plan", nil, "tfstate/prodenv:eu"},
		{"another directory", map[string]string{"main.tf": http, "sub/main.tf": azurerm}, "terraform -chdir=sub plan", nil, "azurerm"},
		{"a tofu file in place of a tf file", map[string]string{"main.tf": azurerm, "main.tofu": http}, "tofu plan", nil, ""},
		{"a tofu file for terraform", map[string]string{"main.tf": azurerm, "main.tofu": http}, "/usr/bin/terraform plan", nil, "azurerm"},
		{"a script", map[string]string{"main.tf": azurerm}, "./deploy.sh -chdir=sub", nil, "azurerm"},
		{"a script elsewhere", nil, "./deploy.sh", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := checkDir(dir, strings.Fields(c.command), func(name string) string { return c.env[name] }, ref.Blob{Container: "tfstate", Blob: "prod"})
			if c.says == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			v := fail.Judge(err)
			if hint := fail.Hint(err, v, "", ""); err == nil || v.Code != fail.ExitUsage || hint == "" || !strings.Contains(err.Error()+"\n"+hint, c.says) {
				t.Errorf("%v, want a refusal about %q, with a way out", err, c.says)
			}
		})
	}
}
