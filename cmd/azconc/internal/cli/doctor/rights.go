package doctor

import (
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/rights"
)

// parseVerb reads the name of a verb that needs rights.
func parseVerb(verb string) (string, error) {
	verb = strings.TrimPrefix(verb, "azconc ")
	if rights.Of(verb) == nil {
		return "", fail.WithHint(fail.Usagef("--for %q is not a verb that needs rights", verb), `give it as in --for "queue consume"`)
	}
	return verb, nil
}

// rights compares what a verb needs with what a SAS grants; a SAS of one resource has neither ss nor srt. Roles are not visible, and most
// permissions cannot be tried without a change.
func (p *patient) rights(account *azaccount.Account) {
	granted := account.Granted()
	for _, need := range rights.Of(p.opts.For) {
		lacks := ""
		for _, part := range [][2]string{{"ss", need.Service[:1]}, {"srt", need.Types}, {"sp", need.Letters}} {
			for _, letter := range part[1] {
				if has := granted.Get(part[0]); has != "" && !strings.ContainsRune(has, letter) {
					lacks += " " + part[0] + "=" + string(letter)
				}
			}
		}
		check, needs := "rights "+need.Service, p.opts.For+" needs "+need.String()
		switch signed := granted.Has("sig"); {
		case signed && need.Letters == "":
			p.add(check, failed, "give the account key, or sign in", "%s; no SAS is sufficient", needs)
		case lacks != "":
			p.add(check, failed, "create a SAS with what is missing", "%s; the SAS lacks%s", needs, lacks)
		default:
			p.add(check, ok, "", "%s", needs)
		}
	}
}
