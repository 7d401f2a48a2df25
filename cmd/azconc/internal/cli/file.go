package cli

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/spf13/cobra"
)

func newFileCmd(f *Factory) *cobra.Command {
	return newGroupCmd("file", "Read and write Azure Files alongside SMB clients",
		newFilePutCmd(f, nil),
		newFileGetCmd(f, nil),
		newFileShowCmd(f, nil),
		newFileUpdateCmd(f, nil),
		newFileDeleteCmd(f, nil),
		newFileWaitCmd(f, nil),
		newFileExplainCmd(f, nil),
		newLeaseCmd(f, "file"),
		newGroupCmd("handles", "List and close the handles of SMB clients",
			newFileHandlesListCmd(f, nil),
			newFileHandlesCloseCmd(f, nil),
		),
	)
}

func newShareCmd(f *Factory) *cobra.Command {
	return newGroupCmd("share", "Create, delete and lease shares",
		newShareCreateCmd(f, nil),
		newShareShowCmd(f, nil),
		newShareDeleteCmd(f, nil),
		newLeaseCmd(f, "share"),
	)
}

// fileRef names a share, or a file or directory in it.
type fileRef struct {
	Share string
	Path  string
}

func (r fileRef) String() string { return strings.TrimSuffix(r.Share+"/"+r.Path, "/") }

// parseShare reads the name of a share.
func parseShare(arg string) (fileRef, error) {
	r, err := parseFileRef(strings.TrimSuffix(arg, "/"))
	if err == nil && r.Path != "" {
		return r, withHint(usagef("%q names a file, not a share", r.String()), "the share is "+r.Share)
	}
	return r, err
}

// parseFile reads share/path.
func parseFile(arg string) (fileRef, error) {
	r, err := parseFileRef(arg)
	if err == nil && r.Path == "" {
		return r, withHint(usagef("%q names a share, not a file", r.Share), "a file is named share/path")
	}
	return r, err
}

// parseFileRef holds a name against the rules of "Naming and referencing shares, directories, files, and metadata".
func parseFileRef(arg string) (fileRef, error) {
	if strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") {
		return fileRef{}, withHint(usagef("a file is given by its path, not by a URL"), "the account comes from --account-name or --connection-string")
	}
	var r fileRef
	r.Share, r.Path, _ = strings.Cut(arg, "/")
	if validContainer(r.Share) != nil || strings.HasPrefix(r.Share, "$") {
		return r, withHint(usagef("%q is not a share's name", r.Share), "a name has 3 to 63 lower-case letters, digits and single hyphens, and begins and ends with a letter or digit")
	}
	if !utf8.ValidString(r.Path) || utf8.RuneCountInString(r.Path) > 2048 {
		return r, usagef("the path is not UTF-8 of up to 2048 characters")
	}
	if r.Path == "" {
		return r, nil
	}
	for _, name := range strings.Split(r.Path, "/") {
		switch {
		case name == "", name == ".", name == "..":
			return r, usagef("the path %q has a part that is empty, . or ..", r.Path)
		case utf8.RuneCountInString(name) > 255:
			return r, usagef("a part of the path has more than 255 characters")
		case strings.ContainsAny(name, `"\:|<>*?`):
			return r, usagef(`the path %q has one of the characters " \ : | < > * ?, which no name can have`, r.Path)
		}
	}
	return r, nil
}

// FileService returns the client of the account's File azfiles.
func (f *Factory) FileService() (*azfiles.Client, error) {
	opts := &azfiles.ClientOptions{ClientOptions: f.ClientOptions()}
	c, err := f.connection()
	if err != nil {
		return nil, err
	}
	endpoint := strings.TrimSuffix(c.endpoint[fileService], "/")
	switch {
	case strings.Contains(endpoint, "://"+devAccount+".file."), endpoint == "" && c.endpoint[blobService] != "":
		return nil, withHint(usagef("the connection has no File service"), "Azurite has none; give the connection of an account, or --file-endpoint")
	case endpoint == "":
		return nil, noAccount()
	}
	switch {
	case c.key != "":
		cred, err := azfiles.NewSharedKeyCredential(c.account, c.key)
		if err != nil {
			return nil, usagef("the account key is not usable")
		}
		return azfiles.NewClientWithSharedKeyCredential(endpoint+"/", cred, opts)
	case c.sas != "":
		return azfiles.NewClientWithNoCredential(endpoint+"/?"+c.sas, opts)
	default:
		cred, err := f.tokenCredential()
		if err != nil {
			return nil, err
		}
		// Without it the service refuses tokens (REST: "Authorize access to Azure file shares with Microsoft Entra ID").
		opts.FileRequestIntent = to.Ptr(azfiles.ShareTokenIntentBackup)
		return azfiles.NewClient(endpoint+"/", cred, opts)
	}
}

// Share returns the client of r's share.
func (f *Factory) Share(r fileRef) (*share.Client, error) {
	s, err := f.FileService()
	if err != nil {
		return nil, err
	}
	return s.NewShareClient(r.Share), nil
}

// File returns the client of a file. It is the directory's, because the SDK would escape the slashes in a path.
func (f *Factory) File(r fileRef) (*file.Client, error) {
	dir, name := path.Split(r.Path)
	d, err := f.Directory(fileRef{Share: r.Share, Path: strings.TrimSuffix(dir, "/")})
	if err != nil {
		return nil, err
	}
	return d.NewFileClient(name), nil
}

// Directory returns the client of a directory: the share's root if r has no path.
func (f *Factory) Directory(r fileRef) (*directory.Client, error) {
	s, err := f.Share(r)
	if err != nil {
		return nil, err
	}
	d := s.NewRootDirectoryClient()
	for _, name := range strings.FieldsFunc(r.Path, func(c rune) bool { return c == '/' }) {
		d = d.NewSubdirectoryClient(name)
	}
	return d, nil
}

// fileResult is the result of a verb that changes a file or share.
type fileResult struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	ETag      string `json:"etag,omitempty"`
	WaitedMS  int64  `json:"waited_ms"`
	Ambiguous int    `json:"ambiguous"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r fileResult) text(w io.Writer) { fmt.Fprintln(w, r.Outcome, r.Resource) }

func (f *Factory) printFile(r fileResult) error {
	r.Requests, r.ElapsedMS = f.requests.Load(), time.Since(f.began).Milliseconds()
	return f.Print(r)
}
