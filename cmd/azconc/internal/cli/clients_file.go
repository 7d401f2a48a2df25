package cli

import (
	"path"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
)

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
		return nil, WithHint(Usagef("the connection has no File service"), "Azurite has none; give the connection of an account, or --file-endpoint")
	case endpoint == "":
		return nil, noAccount()
	}
	switch {
	case c.key != "":
		cred, err := azfiles.NewSharedKeyCredential(c.account, c.key)
		if err != nil {
			return nil, Usagef("the account key is not usable")
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
func (f *Factory) Share(r FileRef) (*share.Client, error) {
	s, err := f.FileService()
	if err != nil {
		return nil, err
	}
	return s.NewShareClient(r.Share), nil
}

// File returns the client of a file. It is the directory's, because the SDK would escape the slashes in a path.
func (f *Factory) File(r FileRef) (*file.Client, error) {
	dir, name := path.Split(r.Path)
	d, err := f.Directory(FileRef{Share: r.Share, Path: strings.TrimSuffix(dir, "/")})
	if err != nil {
		return nil, err
	}
	return d.NewFileClient(name), nil
}

// Directory returns the client of a directory: the share's root if r has no path.
func (f *Factory) Directory(r FileRef) (*directory.Client, error) {
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
