package main

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// tfClient is a program that speaks the protocol of the http backend as OpenTofu does. It appends a word to the state, in two
// writes, under a lock:
//
//	tfclient word [n before|n after]    kills itself before or after its n-th request
//	tfclient force-unlock               sends what Terraform sends: an UNLOCK without a body
//	tfclient nothing                    sends nothing
//
// A state that is refused is left in errored.tfstate.
func tfClient() {
	c := &terraform{id: os.Getenv("TFCLIENT_ID"), args: os.Args[2:]}
	if c.id == "" {
		c.id = "6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11"
	}
	info := `{"ID":"` + c.id + `","Operation":"OperationTypeApply","Info":"","Who":"ada@` + c.id[:8] + `","Version":"1.12.6","Created":"` +
		time.Now().UTC().Format(time.RFC3339Nano) + `","Path":""}`
	word := os.Args[1]
	switch word {
	case "nothing":
		return
	case "force-unlock":
		c.send("UNLOCK", "TF_HTTP_UNLOCK_ADDRESS", "", "", 200)
		return
	}
	c.send("LOCK", "TF_HTTP_LOCK_ADDRESS", "", info, 200)
	state := c.send("GET", "TF_HTTP_ADDRESS", "", "", 200, 404)
	if pause := os.Getenv("TFCLIENT_PAUSE"); pause != "" {
		_ = os.WriteFile(pause, []byte("begun\n"), 0o600)
		for _, err := os.Stat(pause + ".go"); err != nil; _, err = os.Stat(pause + ".go") {
			<-time.After(10 * time.Millisecond)
		}
	}
	for _, part := range []string{word[:1], word[1:]} {
		state += part
		c.send("POST", "TF_HTTP_ADDRESS", "?ID="+c.id, state, 200)
	}
	c.send("UNLOCK", "TF_HTTP_UNLOCK_ADDRESS", "", info, 200)
}

type terraform struct {
	id   string
	args []string
	sent int
}

// send sends a request and ends the program unless its answer has one of the statuses.
func (c *terraform) send(method, variable, query, body string, want ...int) string {
	c.sent++
	c.dieAt("before")
	r, err := http.NewRequest(method, os.Getenv(variable)+query, strings.NewReader(body))
	if err != nil {
		c.end(err)
	}
	r.SetBasicAuth(os.Getenv("TF_HTTP_USERNAME"), os.Getenv("TF_HTTP_PASSWORD"))
	if body != "" {
		sum := md5.Sum([]byte(body))
		r.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.end(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.end(err)
	}
	_ = resp.Body.Close()
	c.dieAt("after")
	for _, status := range want {
		if resp.StatusCode == status {
			if status == 404 {
				return ""
			}
			return string(answer)
		}
	}
	if method == http.MethodPost {
		_ = os.WriteFile("errored.tfstate", []byte(body), 0o600)
	}
	c.end(fmt.Errorf("%s: %d %s", method, resp.StatusCode, bytes.TrimSpace(answer)))
	return ""
}

func (c *terraform) dieAt(when string) {
	if len(c.args) == 2 && c.args[0] == strconv.Itoa(c.sent) && c.args[1] == when {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
}

func (c *terraform) end(err error) {
	fmt.Fprintln(os.Stderr, "tfclient:", err)
	os.Exit(1)
}
