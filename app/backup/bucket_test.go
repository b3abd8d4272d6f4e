package backup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// bucketServer starts an S3 server with one bucket, and sets the environment to use it.
func bucketServer(t *testing.T) {
	t.Helper()
	bin := os.Getenv("ASHLAR_VERSITYGW")
	if bin == "" {
		bin, _ = exec.LookPath("versitygw")
	}
	if bin == "" {
		vectors.Missing(t, "needs an S3 server: put versitygw on PATH or name it in ASHLAR_VERSITYGW (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)")
	}
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	root, sidecar := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), bin, "--access", "key-id", "--secret", "key-secret", "--port", address, "--quiet", "--health", "/health",
		"posix", "--sidecar", sidecar, root)
	var log strings.Builder
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended, which kills it
	for deadline := time.Now().Add(await.Patience); ; time.Sleep(50 * time.Millisecond) {
		if err := ask(t.Context(), "http://"+address+"/health"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the S3 server does not answer: %v\n%s", err, log.String())
		}
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://"+address)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "key-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key-secret")
}

func ask(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// TestBucket is TestFolder with a real S3 server, below a prefix and without one.
func TestBucket(t *testing.T) {
	bucketServer(t)
	for _, place := range []string{"s3://backups/deep/prefix", "s3://backups"} {
		target, err := OpenTarget(place)
		if err != nil {
			t.Fatal(err)
		}
		testTarget(t, target)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	target, err := OpenTarget("s3://backups/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Names(t.Context(), target); err == nil || !strings.Contains(err.Error(), "s3://backups/x") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong secret: %v, expected an error with the target and without the secret", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if target, err = OpenTarget("s3://backups/x"); err != nil {
		t.Fatal(err)
	}
	if _, err := Names(t.Context(), target); err == nil || !strings.Contains(err.Error(), "no credentials were found (want both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") {
		t.Errorf("an access key without its secret: %v", err)
	}
}

// TestEndpoint: only scheme and host of the server's URL are used, so a URL with more is refused.
func TestEndpoint(t *testing.T) {
	for endpoint, accepted := range map[string]bool{
		"https://s3.example.org": true, "http://s3.example.org:9000/": true,
		"https://s3.example.org/storage/v1/s3": false, "https://id:secret@s3.example.org": false, "https://s3.example.org/?region=x": false, "s3.example.org": false,
	} {
		t.Setenv("AWS_ENDPOINT_URL", endpoint)
		if _, err := openBucket("s3://backups", "backups"); (err == nil) != accepted || err != nil && (!strings.Contains(err.Error(), "AWS_ENDPOINT_URL") || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s: %v, accepted should be %t", endpoint, err, accepted)
		}
	}
}

// TestCredentialsFile: a file that cannot be read is named, instead of asking the server without credentials.
func TestCredentialsFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "s3")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", missing)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := openBucket("s3://backups", "backups"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "AWS_SHARED_CREDENTIALS_FILE: open "+missing) {
		t.Errorf("a missing file: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "key-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key-secret")
	if _, err := openBucket("s3://backups", "backups"); err != nil {
		t.Errorf("the environment has credentials, and a file is missing: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	configured := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(configured, []byte("[default]\naws_access_key_id = key-id\naws_secret_access_key = key-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", configured)
	if _, err := openBucket("s3://backups", "backups"); err != nil {
		t.Errorf("AWS_CONFIG_FILE has credentials, and the other file is missing: %v", err)
	}
	t.Setenv("AWS_CONFIG_FILE", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir())
	if _, err := openBucket("s3://backups", "backups"); err == nil || !strings.Contains(err.Error(), "AWS_SHARED_CREDENTIALS_FILE") {
		t.Errorf("a folder: %v", err)
	}
}
