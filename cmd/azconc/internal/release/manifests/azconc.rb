class Azconc < Formula
  desc "Concurrency control for Azure Storage"
  homepage "https://github.com/azconc/azconc"
  version "{{.Version}}"
  license "MIT"
{{range .Archives}}
  on_{{if eq .System "darwin"}}macos{{else}}linux{{end}} do
    on_{{if eq .Arch "amd64"}}intel{{else}}arm{{end}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
  end
{{end}}
  def install
    bin.install "azconc"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/bash/azconc"
    zsh_completion.install "completions/zsh/_azconc"
    fish_completion.install "completions/fish/azconc.fish"
  end

  test do
    assert_match "azconc v#{version} ", shell_output("#{bin}/azconc version")
  end
end
