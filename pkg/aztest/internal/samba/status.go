package samba

import "fmt"

// Status is the NT status with which SMB refuses a request.
type Status uint32

// The statuses that this package distinguishes.
const (
	StatusPending          Status = 0x00000103
	StatusNoMoreFiles      Status = 0x80000006
	StatusMoreProcessing   Status = 0xC0000016
	StatusAccessDenied     Status = 0xC0000022
	StatusNameNotFound     Status = 0xC0000034
	StatusNameCollision    Status = 0xC0000035
	StatusPathNotFound     Status = 0xC000003A
	StatusSharingViolation Status = 0xC0000043
	StatusFileLockConflict Status = 0xC0000054
	StatusLockNotGranted   Status = 0xC0000055
	StatusDeletePending    Status = 0xC0000056
	StatusNameDeleted      Status = 0xC00000C9
	StatusCannotDelete     Status = 0xC0000121
	StatusFileClosed       Status = 0xC0000128
	StatusEndOfFile        Status = 0xC0000011
)

var statusNames = map[Status]string{
	StatusPending:          "STATUS_PENDING",
	StatusNoMoreFiles:      "STATUS_NO_MORE_FILES",
	StatusMoreProcessing:   "STATUS_MORE_PROCESSING_REQUIRED",
	StatusAccessDenied:     "STATUS_ACCESS_DENIED",
	StatusNameNotFound:     "STATUS_OBJECT_NAME_NOT_FOUND",
	StatusNameCollision:    "STATUS_OBJECT_NAME_COLLISION",
	StatusPathNotFound:     "STATUS_OBJECT_PATH_NOT_FOUND",
	StatusSharingViolation: "STATUS_SHARING_VIOLATION",
	StatusFileLockConflict: "STATUS_FILE_LOCK_CONFLICT",
	StatusLockNotGranted:   "STATUS_LOCK_NOT_GRANTED",
	StatusDeletePending:    "STATUS_DELETE_PENDING",
	StatusNameDeleted:      "STATUS_NETWORK_NAME_DELETED",
	StatusCannotDelete:     "STATUS_CANNOT_DELETE",
	StatusFileClosed:       "STATUS_FILE_CLOSED",
	StatusEndOfFile:        "STATUS_END_OF_FILE",
}

func (s Status) Error() string {
	if name := statusNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("NT status 0x%08X", uint32(s))
}
