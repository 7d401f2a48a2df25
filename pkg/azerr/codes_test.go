package azerr

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	// The lists that are read below, kept in go.mod whatever else uses them.
	_ "github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/fileerror"
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/queueerror"
)

// documented is every code under the status that the service's reference gives it, and what it has to mean. It is
// written out a second time on purpose: a slip in the map must not be repeated here by copying a line.
var documented = []struct {
	services string
	status   int
	want     string
	codes    string
}{
	// Common to all services.
	{"blob queue file", 503, "throttled transient", "ServerBusy"},
	{"blob queue file", 500, "unknown ambiguous transient", "InternalError OperationTimedOut"},
	{"blob queue file", 409, "conflict exists", "AccountAlreadyExists ResourceAlreadyExists"},
	{"blob queue file", 409, "throttled transient", "AccountBeingCreated"},
	{"blob queue file", 404, "not found", "ResourceNotFound"},
	{"blob queue file", 403, "unauthorised", `AccountIsDisabled AuthenticationFailed AuthorizationFailure InsufficientAccountPermissions
		AuthorizationPermissionMismatch AuthorizationProtocolMismatch AuthorizationResourceTypeMismatch
		AuthorizationServiceMismatch AuthorizationSourceIPMismatch KeyBasedAuthenticationNotPermitted`},
	{"blob queue file", 401, "unauthorised", "InvalidAuthenticationInfo NoAuthenticationInformation"},
	{"blob queue file", 412, "conflict changed", "ConditionNotMet"},
	{"blob queue file", 400, "bad input transient", "Md5Mismatch Crc64Mismatch"},
	{"blob queue file", 409, "permanent", "FeatureVersionMismatch ResourceTypeMismatch"},
	{"blob queue file", 400, "bad input", `ConditionHeadersNotSupported EmptyMetadataKey InvalidHeaderValue InvalidHttpVerb
		InvalidInput InvalidMd5 InvalidMetadata InvalidQueryParameterValue InvalidRange InvalidResourceName InvalidUri
		InvalidXmlDocument InvalidXmlNodeValue MetadataTooLarge MissingContentLengthHeader MissingRequiredHeader
		MissingRequiredQueryParameter MissingRequiredXmlNode MultipleConditionHeadersNotSupported OutOfRangeInput
		OutOfRangeQueryParameterValue RequestBodyTooLarge RequestUrlFailedToParse UnsupportedHeader UnsupportedHttpVerb
		UnsupportedQueryParameter UnsupportedXmlNode`},

	// Blobs and containers.
	{"blob", 412, "conflict changed", "TargetConditionNotMet"},
	{"blob", 409, "conflict changed", "BlobOverwritten"},
	{"blob", 412, "conflict source changed", "SourceConditionNotMet"},
	{"blob", 412, "conflict position", "AppendPositionConditionNotMet MaxBlobSizeConditionNotMet"},
	{"blob", 412, "conflict sequence", "SequenceNumberConditionNotMet"},
	{"blob", 400, "conflict blocklist", "InvalidBlockList"},
	{"blob", 409, "conflict exists", "BlobAlreadyExists ContainerAlreadyExists"},
	{"blob", 403, "unauthorised exists", "UnauthorizedBlobOverwrite"},
	{"blob", 409, "held", "LeaseAlreadyPresent LeaseIsBreakingAndCannotBeAcquired"},
	{"blob", 412, "held", "LeaseIdMissing"},
	{"blob", 409, "lost lease broken", "LeaseIsBreakingAndCannotBeChanged LeaseIsBrokenAndCannotBeRenewed LeaseAlreadyBroken"},
	{"blob", 409, "lost", "LeaseIdMismatchWithLeaseOperation LeaseNotPresentWithLeaseOperation"},
	{"blob", 412, "lost", `LeaseLost LeaseIdMismatchWithBlobOperation LeaseIdMismatchWithContainerOperation
		LeaseNotPresentWithBlobOperation LeaseNotPresentWithContainerOperation`},
	{"blob", 404, "not found", "BlobNotFound ContainerNotFound PreviousSnapshotNotFound"},
	{"blob", 409, "throttled transient", "ContainerBeingDeleted PendingCopyOperation SnapshotOperationRateExceeded SystemInUse"},
	{"blob", 404, "not found", "CannotVerifyCopySource"},
	{"blob", 412, "conflict source changed", "CannotVerifyCopySource"}, // Put Block From URL and its like
	{"blob", 304, "conflict source changed", "CannotVerifyCopySource"},
	{"blob", 403, "unauthorised", "CannotVerifyCopySource"},
	{"blob", 500, "unknown ambiguous transient", "CannotVerifyCopySource"},
	{"blob", 409, "permanent", `BlobArchived BlobBeingRehydrated BlobImmutableDueToPolicy BlobImmutableDueToLegalHold
		BlobIsSealed BlobNotArchived BlobTierInadequateForContentLength BlobUsesCustomerSpecifiedEncryption CannotChangeToLowerTier
		ContainerDisabled ContentLengthLargerThanTierLimit CopyAcrossAccountsNotSupported CopyIdMismatch
		ImmutabilityPolicyDeleteOnLockedPolicy IncrementalCopyBlobMismatch
		IncrementalCopyOfEralierVersionSnapshotNotAllowed IncrementalCopyOfEarlierSnapshotNotAllowed
		IncrementalCopyOfEarlierVersionSnapshotNotAllowed IncrementalCopySourceMustBeSnapshot InvalidBlobTier
		InvalidBlobType InvalidOperation InvalidSourceBlobType NoPendingCopyOperation
		OperationNotAllowedOnIncrementalCopyBlob OperationNotAllowedOnRootBlob PreviousSnapshotCannotBeNewer
		PreviousSnapshotOperationNotSupported PublicAccessNotPermitted SnapshotCountExceeded SnapshotsPresent`},
	{"blob", 400, "bad input", `BlockCountExceedsLimit BlockListTooLong InfiniteLeaseDurationRequired InvalidBlobOrBlock
		InvalidBlockId InvalidPageRange InvalidSourceBlobUrl InvalidVersionForPageBlobOperation
		SequenceNumberIncrementTooLarge UnsatisfiableCondition`},

	// Tables. Their answers carry the code in the body only.
	{"table", 412, "conflict changed", "UpdateConditionNotSatisfied"},
	{"table", 409, "conflict exists", "EntityAlreadyExists TableAlreadyExists"},
	{"table", 404, "not found", "EntityNotFound ResourceNotFound TableNotFound"},
	{"table", 409, "throttled transient", "TableBeingDeleted"},
	{"table", 501, "permanent", "NotImplemented"},
	{"table", 400, "bad input", `CommandsInBatchActOnDifferentPartitions DuplicatePropertiesSpecified EntityTooLarge
		HostInformationNotPresent InvalidDuplicateRow InvalidInput InvalidValueType InvalidXmlDocument OutOfRangeInput
		PropertiesNeedValue PropertyNameInvalid PropertyNameTooLong PropertyValueTooLarge TooManyProperties
		XMethodIncorrectCount XMethodIncorrectValue XMethodNotUsingPost`},
	{"table", 405, "bad input", "MethodNotAllowed"},
	{"table", 415, "bad input", "JsonFormatNotSupported"},

	// Queues. The service and its emulator disagree about a stale receipt.
	{"queue", 404, "lost", "MessageNotFound"},
	{"queue", 400, "lost", "PopReceiptMismatch"},
	{"queue", 404, "not found", "QueueNotFound"},
	{"queue", 409, "conflict exists", "QueueAlreadyExists"},
	{"queue", 409, "throttled transient", "QueueBeingDeleted"},
	{"queue", 409, "permanent", "QueueDisabled QueueNotEmpty"},
	{"queue", 400, "bad input", "InvalidMarker MessageTooLarge"},

	// Files. Two pages of the reference give some codes two statuses, and one state two codes.
	{"file", 409, "held open handle", "SharingViolation FileOpenBySmbClient CannotDeleteFileOrDirectory"},
	{"file", 409, "held range locked", "FileLockConflict"},
	{"file", 409, "held delete pending", "DeletePending SMBDeletePending"},
	{"file", 409, "held", "DeleteShareWhenSnapshotLeased"},
	{"file", 408, "unknown cache flush ambiguous transient", "ClientCacheFlushDelay"},
	{"file", 500, "unknown cache flush ambiguous transient", "ClientCacheFlushDelay"},
	{"file", 412, "permanent read only", "ReadOnlyAttribute"},
	{"file", 409, "permanent read only", "ReadOnlyAttribute"},
	{"file", 409, "held", "LeaseAlreadyPresent"},
	{"file", 412, "held", "LeaseIdMissing"},
	{"file", 409, "lost", "LeaseIdMismatchWithFileOperation LeaseIdMismatchWithLeaseOperation LeaseNotPresentWithLeaseOperation"},
	{"file", 409, "lost lease broken", "LeaseAlreadyBroken LeaseIsBrokenAndCannotBeRenewed"},
	{"file", 412, "lost", `LeaseLost LeaseIdMismatchWithFileOperation LeaseIdMismatchWithShareOperation LeaseNotPresentWithFileOperation
		LeaseNotPresentWithShareOperation`},
	{"file", 404, "not found", "ParentNotFound ShareNotFound"},
	{"file", 409, "conflict exists", "ShareAlreadyExists"},
	{"file", 409, "throttled transient", "ShareBeingDeleted ShareSnapshotInProgress"},
	{"file", 400, "throttled transient", "HandleLimitExceeded"},
	{"file", 403, "unauthorised", "FileOAuthManagementApiRestrictedToSrp"},
	{"file", 409, "permanent", `DirectoryNotEmpty ShareDisabled ShareHasSnapshots ShareSizeLimitReached ShareSnapshotCountExceeded
		ShareSnapshotOperationNotSupported TotalSharesCountExceedsAccountLimit
		TotalSharesProvisionedBandwidthExceedsAccountLimit TotalSharesProvisionedCapacityExceedsAccountLimit
		TotalSharesProvisionedIopsExceedsAccountLimit FileShareProvisionedBandwidthInvalid
		FileShareProvisionedIopsInvalid FileShareProvisionedStorageInvalid`},
	{"file", 400, "bad input", "InvalidFileOrDirectoryPathName"},
}

// words says an outcome as the table does.
func words(o Outcome) string {
	text := o.Kind.String()
	if o.Reason != None {
		text += " " + o.Reason.String()
	}
	if o.Ambiguous() {
		text += " ambiguous"
	}
	if o.Transient() {
		text += " transient"
	}
	return text
}

func TestEveryDocumentedCodeMeansWhatItShould(t *testing.T) {
	for _, row := range documented {
		for code := range strings.FieldsSeq(row.codes) {
			err := fmt.Errorf("wrapped: %w", answered(row.status, code, "x-ms-request-id", "r-1"))
			o := Classify(err)
			if got := words(o); got != row.want {
				t.Errorf("%s: %d %s is %q, want %q", row.services, row.status, code, got, row.want)
			}
			if o.Code != code || o.Status != row.status || o.RequestID != "r-1" || o.Index != -1 {
				t.Errorf("%d %s: facts = %+v", row.status, code, o)
			}
			if !Has(err, "Other", code) || Has(err, "Other") || Has(err) {
				t.Errorf("Has is wrong about %s", code)
			}
		}
	}
}

// TestTheCodeDecidesWhateverTheStatusSays is the rule the package exists for: 409 and 412 each mean half a dozen things.
func TestTheCodeDecidesWhateverTheStatusSays(t *testing.T) {
	for code := range codes {
		want := Classify(answered(409, code))
		for _, status := range []int{200, 202, 400, 401, 403, 404, 408, 412, 429, 500, 503} {
			got := Classify(answered(status, code))
			got.Status = want.Status
			if got != want {
				t.Errorf("%d %s is %q, but 409 %[2]s is %[4]q", status, code, words(got), words(want))
			}
		}
		if got := words(Classify(answered(304, code))); got != "conflict not modified" {
			t.Errorf("304 %s is %q, want not modified", code, got)
		}
	}
}

func TestAnswersWithoutAKnownCodeGoByTheirStatus(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
		want   string
	}{
		{304, "", "conflict not modified"},
		{400, "", "bad input"},
		{401, "", "unauthorised"},
		{403, "", "unauthorised"},
		{404, "", "not found"},
		{405, "", "bad input"},
		{408, "", "unknown ambiguous transient"},
		{409, "", "other"},
		{412, "", "conflict changed"},
		{413, "", "bad input"},
		{416, "", "bad input"},
		{429, "", "throttled ambiguous transient"},
		{500, "", "unknown ambiguous transient"},
		{501, "", "permanent"},
		{502, "", "unknown ambiguous transient"},
		{503, "", "throttled ambiguous transient"},
		{504, "", "unknown ambiguous transient"},
		{302, "", "other"},
		{0, "", "other"},
		// A code that nobody has documented: as above, but a condition of unknown kind is not said to be the ETag.
		{400, "SomethingNew", "bad input"},
		{403, "SomethingNew", "unauthorised"},
		{404, "SomethingNew", "not found"},
		{409, "SomethingNew", "permanent"},
		{412, "SomethingNew", "conflict"},
		{503, "SomethingNew", "throttled ambiguous transient"},
		{504, "SomethingNew", "unknown ambiguous transient"},
		// Codes are compared as they are: the services do not vary their case.
		{409, "leasealreadypresent", "permanent"},
	} {
		if got := words(Classify(answered(tt.status, tt.code))); got != tt.want {
			t.Errorf("%d %q is %q, want %q", tt.status, tt.code, got, tt.want)
		}
	}
}

// TestEveryCodeOfTheMapIsDocumented keeps a code from being added without its meaning being written down twice.
func TestEveryCodeOfTheMapIsDocumented(t *testing.T) {
	inTable := map[string]bool{}
	for _, row := range documented {
		for code := range strings.FieldsSeq(row.codes) {
			inTable[code] = true
		}
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if !inTable[code] {
			t.Errorf("%s is in the map, not in the test's table", code)
		}
	}
}

// TestEveryCodeOfTheSDKHasAMeaning reads the SDK's own lists, so that a code nobody has thought about is noticed when
// the SDK is updated, not when a user meets it. A code has to be in the table of its own service.
func TestEveryCodeOfTheSDKHasAMeaning(t *testing.T) {
	for _, list := range []struct {
		service, pkg string
		least        int // what was there when this was written: fewer means that the list has moved
	}{
		{"blob", "storage/azblob/bloberror", 115},
		{"table", "data/aztables", 26},
		{"queue", "storage/azqueue/v2/queueerror", 57},
		{"file", "storage/azfile/fileerror", 72},
	} {
		ours := map[string]bool{}
		for _, row := range documented {
			if slices.Contains(strings.Fields(row.services), list.service) {
				for code := range strings.FieldsSeq(row.codes) {
					ours[code] = true
				}
			}
		}
		theirs := sdkCodes(t, "github.com/Azure/azure-sdk-for-go/sdk/"+list.pkg)
		for _, code := range theirs {
			if !ours[code] {
				t.Errorf("%s: %s is not in the table for %s", list.pkg, code, list.service)
			}
		}
		if len(theirs) < list.least {
			t.Errorf("%s: %d codes found, want at least %d", list.pkg, len(theirs), list.least)
		}
	}
}

// sdkCodes collects the string constants of a package whose type names an error code.
func sdkCodes(t *testing.T, pkg string) []string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			typ, ok := spec.Type.(*ast.Ident)
			if !ok || !strings.HasSuffix(typ.Name, "Code") {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					code, _ := strconv.Unquote(lit.Value)
					found = append(found, code)
				}
			}
			return true
		})
	}
	return found
}
