package root

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/rights"
)

// printHelp prints the help of a command, or a topic. It ends with the examples, because the end of the help stays on the
// screen.
func printHelp(out io.Writer, cmd *cobra.Command) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	if about := strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)); about != "" {
		p("%s", reflow(about))
	}
	if !cmd.Runnable() && !cmd.HasSubCommands() {
		return
	}
	p("\n%s", wrap("usage: "+cmd.UseLine(), len("usage: ")))
	if cmd.HasAvailableSubCommands() {
		printCommands(p, cmd)
	}
	if cmd.HasHelpSubCommands() {
		p("\nTopics (azconc help <topic>):")
		for _, c := range cmd.Commands() {
			if c.IsAdditionalHelpTopicCommand() {
				p("%s", entry(c))
			}
		}
	}
	if own := cmd.LocalNonPersistentFlags(); own.HasAvailableFlags() {
		p("\nFlags:\n%s", flagUsages(own))
	}
	if needs := rights.Of(strings.TrimPrefix(cmd.CommandPath(), "azconc ")); needs != nil {
		p("\nRights:")
		for _, need := range needs {
			p("%s", wrap("  "+need.String(), len("  ")))
		}
	}
	p("\nFlags of every command, such as --account-name, --output and --timeout: azconc help flags")
	if cmd.HasExample() {
		p("\nExamples:\n%s", strings.TrimRight(cmd.Example, "\n"))
	}
}

// flagUsages describes flags, one or more lines each.
func flagUsages(set *pflag.FlagSet) string {
	return strings.TrimRight(set.FlagUsagesWrapped(columns), " \n")
}

// printCommands prints the commands below a group, by the groups that it has itself.
func printCommands(p func(string, ...any), cmd *cobra.Command) {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, group := range groups {
		p("\n%s", group.Title)
		for _, c := range cmd.Commands() {
			if c.GroupID == group.ID && c.IsAvailableCommand() {
				p("%s", entry(c))
			}
		}
	}
}

// entry is the line of a command in a list.
func entry(c *cobra.Command) string {
	line := fmt.Sprintf("  %-*s ", c.NamePadding(), c.Name())
	return wrap(line+c.Short, len(line))
}

// newHelpTopics returns what is no command and has a page of its own. every are the flags of every command.
func newHelpTopics(every *pflag.FlagSet) []*cobra.Command {
	return []*cobra.Command{
		{Use: "flags", Short: "The flags of every command", Long: "These flags come before or after those of a command.\n\n" + flagUsages(every)},
		{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp},
		{Use: "environment", Short: "Environment variables and credentials", Long: environmentHelp},
		{Use: "output", Short: "Forms of the result: -o and --query", Long: outputHelp},
		{Use: "operations", Short: "What --op-id promises, and for how long", Long: flags.OperationsHelp()},
		{Use: "holding", Short: "What happens to a command under a lock that ends or is lost", Long: lock.HoldingHelp},
		{Use: "conditions", Short: "ETags, dates, tags and leases as conditions", Long: conditionsHelp},
	}
}

const exitCodesHelp = `Exit codes are the same for all commands.

    0  ok
    1  failed
    2  usage: nothing was sent
    3  not found
    4  conflict: changed by another writer, or a condition did not hold; nothing was written
    5  outcome unknown: the write may or may not have been applied
    6  held by another holder
    7  already exists
    8  the filter or handler failed; nothing was written. queue consume that ends by itself: a message failed
    9  lease lost
   77  not authorised
  124  timed out (--timeout)
  130  interrupted (143 by SIGTERM)

The run commands exit with the status of the command that they run: 128+n if a signal killed it, 126 or 127 if it could not
be started. They add two codes of their own: 75 (not acquired; -E changes it) and 76 (lost while the command ran).

An unknown outcome is reported as 5 even when --timeout or a signal ended the command.
With -o json every failure except a usage error prints an object with "outcome", "error" and "exit_code" on stdout.`

const outputHelp = `-o is the form of the result on stdout. Exit codes and messages are the same in every form.

  text   for people; the default
  json   one object; a failure that is no usage error prints one, too
  table  columns for people: the elements of the result's list, or the result itself; what is a list or an object is left out
  tsv    the same rows as values separated by tabs, for scripts; without a heading

--query selects from the JSON by an expression of JMESPath, as with the Azure CLI. Without -o it prints JSON; -o text and --query
exclude each other. A result is an object, and a list has a name in it: blobs[].name, not [].name. The numbers of a query have 53 bits:
a larger integer is rounded, and exact without --query.

  azconc blob list jobs --query 'blobs[].name' -o tsv
  azconc blob list jobs --query 'blobs[?size > ` + "`1000`" + `].{Name: name, Size: size}' -o table
  ETAG=$(azconc blob show jobs/state.json --query etag -o tsv)

A name or another value of several that cannot be printed in one line is in quotes in text and tsv, and is taken so. In a row of tsv
a list is its length, and an object is empty. A bool is true or false. A null is empty, and one that is all the query selects prints
nothing. Without --query the columns are those that the result can have, whether it has them or not. A later version may have more: scripts name theirs in --query.

An expression that is not JMESPath is refused before anything is sent. One that does not apply to the result fails when the command
has done its work, with exit code 1. With -o table and -o tsv a failure prints nothing on stdout.`

const environmentHelp = `Connection settings are those of the Azure CLI: a flag, or the variable next to it. A flag takes precedence.

  --connection-string  AZURE_STORAGE_CONNECTION_STRING   UseDevelopmentStorage=true is an emulator on this machine
  --account-name       AZURE_STORAGE_ACCOUNT
  --account-key        AZURE_STORAGE_KEY
  --sas-token          AZURE_STORAGE_SAS_TOKEN
  --auth-mode          AZURE_STORAGE_AUTH_MODE           login: Entra ID; key: the given key or SAS
  --blob-endpoint, --table-endpoint, --queue-endpoint, --file-endpoint

A file keeps a secret out of the shell's history and the list of processes: --account-key-file FILE, or AZURE_STORAGE_KEY_FILE, has
the key, and -file or _FILE does the same for a connection string and a SAS.

A connection string in the environment takes precedence over the other variables. With an account and no credential azconc signs in
with Entra ID: AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, a managed identity, or the Azure CLI's login.
A resource may also be a full URL, with or without a SAS.

  VISUAL, EDITOR       the editor of azconc blob edit
  HTTPS_PROXY, NO_PROXY, HTTP_PROXY

The commands that azconc runs inherit its environment with the credentials in it, but not what a flag has given. To withhold one:

  azconc lock run jobs/nightly -- env -u AZURE_STORAGE_CONNECTION_STRING ./nightly.sh

A filter run by --exec gets AZCONC_RESOURCE, AZCONC_ETAG (empty for a new blob) and AZCONC_ATTEMPT in its environment.`

const conditionsHelp = `Conditions make the service carry out a request only if they hold; otherwise nothing is written, and the exit code is 4
(7 if --if-none-match '*' fails because the blob exists).

  --if-match ETAG             it is at this version              '*': it exists
  --if-none-match ETAG        it is not at this version          '*': it does not exist
  --if-modified-since TIME    it changed after TIME              whole seconds: it may miss a change
  --if-unmodified-since TIME  it did not change after TIME
  --if-tags PREDICATE         its index tags satisfy it          "state" = 'ready' AND "prio" > '3'
  --lease-id ID               you hold its lease

ETags, times and ids are taken in every form in which azconc prints them, and an ETag without its quotes, too. A write takes one of the first four, or --if-match with
--if-unmodified-since, or --if-none-match with --if-modified-since: in such a pair the service evaluates the ETag. Other pairs
are refused before anything is sent. A read takes any combination.
Containers have no conditions on ETags: the service ignores them there, so azconc does not offer them.`

// newHelpCmd is cobra's, but for a name that does not exist, which is a usage error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "help [<command> | <topic>]",
		Short:       "Print the help of a command, or a topic",
		Annotations: map[string]string{cli.TextOnly: "true"},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			on, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range on.Commands() {
				if strings.HasPrefix(sub.Name(), start) && (sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand()) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			on, rest, err := cmd.Root().Find(args)
			if err != nil {
				return &fail.UsageError{Err: err}
			}
			if len(rest) > 0 && (on.HasSubCommands() || on.IsAdditionalHelpTopicCommand()) {
				return cli.UnknownCommand(on, rest[0])
			}
			on.InitDefaultHelpFlag()
			return on.Help()
		},
	}
}
