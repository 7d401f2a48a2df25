package cli

import (
	"path"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pkg/azurite"
)

// FileService returns the client of the account's File service.
func (f *Factory) FileService() (*azfiles.Client, error) {
	opts := &azfiles.ClientOptions{ClientOptions: f.ClientOptions()}
	a, err := f.account()
	if err != nil {
		return nil, err
	}
	endpoint := a.Endpoint(azaccount.File)
	switch {
	case strings.Contains(endpoint, "://"+azurite.DefaultAccount+".file."), endpoint == "" && a.Endpoint(azaccount.Blob) != "":
		return nil, fail.WithHint(fail.Usagef("the connection has no File service"), "Azurite has none, and azconc dev up does; or give the connection of an account, or --file-endpoint")
	case endpoint == "":
		return nil, noAccount()
	}
	c, err := a.FileService(opts)
	return c, connectionError(err)
}

// Share returns the client of r's share.
func (f *Factory) Share(r ref.File) (*share.Client, error) {
	s, err := f.FileService()
	if err != nil {
		return nil, err
	}
	return s.NewShareClient(r.Share), nil
}

// File returns the client of a file. It is the directory's, because the SDK would escape the slashes in a path.
func (f *Factory) File(r ref.File) (*file.Client, error) {
	dir, name := path.Split(r.Path)
	d, err := f.Directory(ref.File{Share: r.Share, Path: strings.TrimSuffix(dir, "/")})
	if err != nil {
		return nil, err
	}
	return d.NewFileClient(name), nil
}

// Directory returns the client of a directory: the share's root if r has no path.
func (f *Factory) Directory(r ref.File) (*directory.Client, error) {
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
