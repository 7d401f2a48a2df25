package emulator

import (
	"fmt"
	"strings"
)

// operations are the names that a fault may select, as the REST reference has them.
var operations = strings.Split(strings.TrimSpace(`
Abort Copy Blob
Acquire Blob Lease
Acquire Container Lease
Acquire File Lease
Acquire Share Lease
Append Blob Seal
Append Block
Append Block From URL
Blob Batch
Break Blob Lease
Break Container Lease
Break File Lease
Break Share Lease
Change Blob Lease
Change Container Lease
Change File Lease
Change Share Lease
Clear Messages
Copy Blob
Copy Blob From URL
Copy File
Create Container
Create Directory
Create File
Create Queue
Create Share
Create Table
Delete Blob
Delete Container
Delete Directory
Delete Entity
Delete File
Delete Message
Delete Queue
Delete Share
Delete Table
Entity Group Transaction
Find Blobs by Tags
Force Close Handles
Get Account Information
Get Blob
Get Blob Metadata
Get Blob Properties
Get Blob Service Properties
Get Blob Service Stats
Get Blob Tags
Get Block List
Get Container ACL
Get Container Metadata
Get Container Properties
Get Directory Metadata
Get Directory Properties
Get File
Get File Metadata
Get File Properties
Get File Service Properties
Get Messages
Get Page Ranges
Get Queue ACL
Get Queue Metadata
Get Queue Service Properties
Get Queue Service Stats
Get Share ACL
Get Share Metadata
Get Share Properties
Get Share Stats
Get Table ACL
Get Table Service Properties
Get Table Service Stats
Insert Entity
Insert Or Merge Entity
Insert Or Replace Entity
List Blobs
List Containers
List Directories and Files
List Handles
List Queues
List Ranges
List Shares
Merge Entity
Peek Messages
Put Blob
Put Blob From URL
Put Block
Put Block From URL
Put Block List
Put Message
Put Page
Put Page From URL
Put Range
Query Entities
Query Tables
Release Blob Lease
Release Container Lease
Release File Lease
Release Share Lease
Renew Blob Lease
Renew Container Lease
Renew Share Lease
Set Blob Metadata
Set Blob Properties
Set Blob Service Properties
Set Blob Tags
Set Blob Tier
Set Container ACL
Set Container Metadata
Set Directory Metadata
Set Directory Properties
Set File Metadata
Set File Properties
Set File Service Properties
Set Queue ACL
Set Queue Metadata
Set Queue Service Properties
Set Share ACL
Set Share Metadata
Set Share Properties
Set Table ACL
Set Table Service Properties
Snapshot Blob
Undelete Blob
Update Entity
Update Message
`), "\n")

// checkOperation refuses a name that no operation has: a fault of it would never happen.
func checkOperation(name string) error {
	best, near := "", len(name)
	for _, one := range operations {
		if one == name {
			return nil
		}
		if d := distance(strings.ToLower(name), strings.ToLower(one)); d < near {
			best, near = one, d
		}
	}
	if near > len(name)/2 {
		return fmt.Errorf("%q is no operation: give writes, or one of the REST reference, such as Put Blob", name)
	}
	return fmt.Errorf("%q is no operation: did you mean %q?", name, best)
}

// distance is the number of letters to insert, to remove or to replace that make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
