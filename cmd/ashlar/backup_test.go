package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"ashlar/internal/await"
)

// stalledBucket is an S3 server that has no objects, and takes one for ever. begun receives when the first one comes.
func stalledBucket(t *testing.T) (url string, begun <-chan struct{}) {
	t.Helper()
	asked, ended := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-ended
			return
		}
		_, _ = fmt.Fprint(w, `<ListBucketResult><Name>backups</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>`)
	}))
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return server.URL, asked
}

// stalledBackup starts a backup that does not end, and waits until it has copied the stores.
func stalledBackup(t *testing.T, d dataDirectory) *exec.Cmd {
	t.Helper()
	url, begun := stalledBucket(t)
	backup, _ := ashlarCommand(t.Context(), "backup", "--data", d.path, "--to", "s3://backups/a")
	backup.Env = append(backup.Env, "AWS_ENDPOINT_URL="+url, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret")
	if err := backup.Start(); err != nil {
		t.Fatal(err)
	}
	await.Receive(t, "the first object", begun)
	return backup
}

func end(t *testing.T, p *exec.Cmd, signal os.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err == nil {
		t.Error("the backup ended without an error")
	}
}

// copiesIn returns the directories of copies that a data directory has.
func copiesIn(t *testing.T, d dataDirectory) (found []string) {
	t.Helper()
	for _, dir := range []string{d.accounts(), d.network()} {
		dir = filepath.Join(dir, "checkpoint")
		if _, err := os.Stat(dir); err == nil {
			found = append(found, dir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	return found
}

// TestServeDuringBackup: a server starts while a backup without a server is under way. If the backup is killed, the next one
// beside that server removes what it left; so does what opens the stores next. One that is interrupted leaves nothing.
func TestServeDuringBackup(t *testing.T) {
	d := newDataDirectory(t)
	backup := stalledBackup(t, d)
	server, said := ashlarCommand(t.Context(), d.serve()...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the control socket", func() bool {
		_, err := os.Stat(filepath.Join(d.path, "control.sock"))
		return err == nil
	})
	end(t, backup, os.Kill)
	if left := copiesIn(t, d); len(left) != 2 {
		t.Errorf("copies %v beside a server, expected those of both stores", left)
	}
	if code, out := runCommand(t, "backup", "--data", d.path, "--to", t.TempDir()); code != exitDone {
		t.Errorf("the next backup: exit code %d\n%s", code, out)
	}
	await.Until(t, "no copies, which the server removes", func() bool { return len(copiesIn(t, d)) == 0 })
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, said)
	}
	end(t, stalledBackup(t, d), os.Interrupt)
	if left := copiesIn(t, d); len(left) > 0 {
		t.Errorf("copies %v after an interrupt", left)
	}
	end(t, stalledBackup(t, d), os.Kill)
	if left := copiesIn(t, d); len(left) != 2 {
		t.Errorf("copies %v after a kill, expected those of both stores", left)
	}
	for _, args := range [][]string{d.goingOn(), d.key("list")} { // open the network, and the accounts
		if code, out := runCommand(t, args...); code != exitDone {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
	}
	if left := copiesIn(t, d); len(left) > 0 {
		t.Errorf("copies %v after the stores were opened", left)
	}
}
