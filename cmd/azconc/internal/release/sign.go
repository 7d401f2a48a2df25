package main

import (
	"fmt"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

// sign signs the list of checksums with the key in a file, for minisign -V. Without a key it says that nothing is signed, and
// the release is otherwise the same.
func (r *release) sign(key string) error {
	if key == "" {
		fmt.Println("not signed: name a key with -sign or AZCONC_SIGNING_KEY (minisign -G -W makes one)")
		return nil
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	var secret minisign.PrivateKey
	if err := secret.UnmarshalText(text); err != nil {
		return fmt.Errorf("%s is no minisign key without a password: %w", key, err)
	}
	list, err := os.ReadFile(filepath.Join(r.out, checksumsName))
	if err != nil {
		return err
	}
	return r.write(checksumsName+".minisig", minisign.Sign(secret, list))
}
