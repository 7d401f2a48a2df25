package replay

import (
	"net/http"
	"slices"
	"strings"
)

// feature returns the feature that a request needs and that aztest does not claim to have, or "" for a request that is
// compared. A request that shows the effect of such a feature needs it too.
func feature(s Scenario, step Step) string {
	name, comp := s.Name, compOf(step)
	_, test, _ := strings.Cut(name, ".test_")
	switch {
	case step.Secondary:
		return "the read-only secondary location"
	case step.Anonymous:
		return "requests without a credential"
	case strings.Contains(name, "token_credential"):
		return "tokens of Microsoft Entra"
	case comp == "userdelegationkey":
		return "user delegation keys"
	case strings.HasPrefix(name, "test_cpk."), strings.Contains(name, "CPK"), strings.Contains(step.Answer.Code, "EncryptionScope"):
		return "keys that the client provides"
	case strings.Contains(step.Query, "versionid="), strings.Contains(name, "VID"), strings.Contains(name, "Version"):
		return "versions"
	case step.Answer.Code == "AuthorizationFailure", step.Answer.Code == "AuthenticationFailed":
		return "the verification of signatures and of what they allow"
	case strings.HasSuffix(name, "TestBlobStartCopyUsingSASSrc"), strings.HasSuffix(name, "TestBlobStartCopySourcePrivate"):
		return "copies from another account"
	case touched(s, step, "incrementalcopy"):
		return "incremental copies"
	case touched(s, step, "legalhold"), touched(s, step, "immutabilityPolicies"), strings.Contains(name, "ImmutabilityPolicy"):
		return "immutability"
	case touched(s, step, "expiry"):
		return "times of expiry, which need a hierarchical namespace"
	case step.Path == "/" && (comp == "properties" || comp == "stats") && !strings.Contains(step.Query, "restype=account"):
		return "settings and statistics of a service"
	case strings.Contains(test, "soft_delete"), touched(s, step, "undelete"), hasHeader(step, "x-ms-is-soft-deleted"), strings.Contains(name, "PermanentDelete"),
		strings.Contains(name, "_Deleted"), strings.Contains(name, "ndelete"), strings.Contains(name, "ContainerRestore"):
		return "soft delete"
	case s.Service == "blob" && strings.HasPrefix(test, "batch_"):
		return "batches of blobs"
	case strings.Contains(step.Path, "premiumcontainer"), strings.HasSuffix(name, "TierAllTiersOnPageBlob"), strings.HasSuffix(name, "TestBlobSetTierAllTiers"):
		return "tiers of premium page blobs"
	case strings.Contains(strings.ToLower(name), "rehydrat"):
		return "coming back from the archive tier, which takes hours"
	case step.Answer.Status == http.StatusInternalServerError, strings.HasSuffix(name, "test_append_block_from_url_with_maxsize_condition"):
		return "a failure inside the service, and what followed it"
	case unrecorded(s):
		return "a container that came and went without a recorded request"
	case step.Length > 0 && (s.Service == "queue" || s.Service == "table"):
		return "a text of which only the length was recorded"
	case step.Path == "/Tables" && strings.Contains(step.Query, "top="):
		return "pages of a list of a whole account, which held other people's tables"
	case step.Path == "/" && strings.Contains(step.Query, "marker=%2Faccount%2F") && !strings.Contains(step.Query, "prefix="):
		return "pages of a list of a whole account, which held other people's containers"
	case s.Service == "file":
		return fileFeature(s, step, test)
	}
	return ""
}

// touched reports whether a scenario sends a request with this comp to the path of the step.
func touched(s Scenario, step Step, comp string) bool {
	return slices.ContainsFunc(s.Steps, func(one Step) bool { return one.Path == step.Path && compOf(one) == comp })
}

// copied reports whether a file is the destination of a copy.
func copied(s Scenario, step Step) bool {
	return slices.ContainsFunc(s.Steps, func(one Step) bool {
		_, copies := one.Header["x-ms-copy-source"]
		return one.Path == step.Path && (copies && compOf(one) == "" || compOf(one) == "copy")
	})
}

func hasHeader(step Step, name string) bool {
	_, there := step.Answer.Header[name]
	return there
}

// unrecorded recognizes scenarios whose container is not found between requests that found it.
func unrecorded(s Scenario) bool {
	gone := slices.ContainsFunc(s.Steps, func(step Step) bool {
		return step.Answer.Code == "ContainerNotFound" && step.Method == http.MethodPut && strings.Count(step.Path, "/") == 2
	})
	return gone && !slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Method == http.MethodDelete })
}

// fileFeature is feature for the File service.
func fileFeature(s Scenario, step Step, test string) string {
	comp := compOf(step)
	switch {
	case strings.Contains(step.Query, "sharesnapshot="), touched(s, step, "snapshot"), strings.Contains(test, "snapshot"):
		return "snapshots of shares"
	case step.Path == "/":
		return "lists of shares"
	case comp == "acl":
		return "access policies of shares"
	case comp == "stats":
		return "statistics of shares"
	case comp == "filepermission", strings.HasPrefix(test, "set_directory_properties"), step.Answer.Code == "FileInvalidPermission":
		return "permissions and attributes of files and directories"
	case strings.Contains(test, "copy_file"), copied(s, step):
		return "copies of files"
	case strings.Contains(test, "from_file_url") && (comp == "range" || comp == "rangelist" || step.Method == http.MethodGet), comp == "rangelist":
		return "ranges of files: lists of them, and copies from a URL"
	case strings.HasPrefix(step.Path, "/test") && strings.Contains(test, "handle"):
		return "handles that SMB clients held while it was recorded"
	}
	return ""
}

// uncompared reports whether a header of the service, or its value, is left out of the comparison.
func uncompared(name string) bool {
	for _, one := range uncomparedHeaders {
		if slices.Contains(one.names, name) {
			return true
		}
	}
	return false
}

// unexpected reports whether a header of aztest that the recorded response does not have is left out of the comparison.
func unexpected(name, service string) bool {
	for _, one := range unexpectedHeaders {
		if slices.Contains(one.names, name) && (one.service == "" || one.service == service) {
			return true
		}
	}
	return false
}

// uncomparedBody reports whether a list shows resources that other scenarios had created in the account.
func uncomparedBody(step Step) bool {
	return step.Path == "/" && compOf(step) == "list" && !strings.Contains(step.Query, "prefix=") ||
		step.Path == "/Tables" && step.Method == http.MethodGet && step.Query == ""
}

// headers are left out of the comparison, for one service or, with "", for all.
type headers struct {
	service string
	names   []string
	why     string
}

var uncomparedHeaders = []headers{
	{"", []string{"content-md5", "x-ms-blob-content-md5"}, "aztest returns the sums that a request sent or asked for; the service computes more, and newer versions another one"},
	{"file", []string{"x-ms-file-attributes", "x-ms-file-creation-time", "x-ms-file-change-time", "x-ms-file-parent-id", "x-ms-file-permission-key"},
		"properties for SMB clients, which aztest does not keep"},
	{"blob", []string{"x-ms-version-id", "x-ms-is-current-version"}, "versions, which aztest does not keep"},
	{"blob", []string{"x-ms-owner", "x-ms-group", "x-ms-permissions", "x-ms-acl", "x-ms-resource-type"}, "of accounts with a hierarchical namespace"},
	{"blob", []string{"x-ms-default-encryption-scope", "x-ms-deny-encryption-scope-override", "x-ms-immutable-storage-with-versioning-enabled"},
		"settings of encryption and immutability, which aztest does not have"},
	{"", []string{"x-ms-tag-count"}, "sent with the value 0 in 2019 only, before blobs had tags"},
}

var unexpectedHeaders = []headers{
	{"", []string{"x-ms-server-encrypted", "x-ms-request-server-encrypted"}, "taken out of the recordings"},
	{"", []string{"content-length"}, "the service sends some answers in chunks"},
	{"", []string{"x-ms-is-hns-enabled"}, "came with a later version"},
	{"file", []string{"x-ms-lease-state", "x-ms-lease-status", "x-ms-file-id", "x-ms-file-last-write-time", "x-ms-number-of-handles-failed"}, "came with a later version"},
}
