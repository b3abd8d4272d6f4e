package backup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

// A killed backup leaves parts of files. They are removed with what no backup names.
func TestPartsAreRemoved(t *testing.T) {
	target := folder(t.TempDir())
	part := filepath.Join(target.path(objectsFolder), "ab", "abcd.123"+partSuffix)
	if err := os.MkdirAll(filepath.Dir(part), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, []byte(noise(1, 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	made := mustMake(t, target, source(t, "accounts", map[string]string{"file": "text"}))
	if _, err := Prune(t.Context(), target, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(part); !os.IsNotExist(err) {
		t.Errorf("%s: %v, expected that it is gone", part, err)
	}
	mustFetch(t, target, made.Name, map[string]map[string]string{"accounts": {"file": "text"}})
}

// A killed backup leaves unfinished uploads in a bucket. Old ones are removed, but not those of other
// programs in the same bucket.
func TestUnfinishedUploadsAreRemoved(t *testing.T) {
	bucketServer(t)
	target, err := OpenTarget("s3://backups/deep/prefix")
	if err != nil {
		t.Fatal(err)
	}
	b := target.(*bucket)
	core := minio.Core{Client: b.client}
	const other = "deep/objects/abcd"
	for _, key := range []string{b.prefix + object("abcd"), other} {
		if _, err := core.NewMultipartUpload(t.Context(), b.name, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (keys []string) {
		for upload := range b.client.ListIncompleteUploads(t.Context(), b.name, "", true) {
			if upload.Err != nil {
				t.Fatal(upload.Err)
			}
			keys = append(keys, upload.Key)
		}
		return keys
	}
	mustMake(t, target, source(t, "accounts", map[string]string{"file": "text"}))
	if _, err := Prune(t.Context(), target, 1); err != nil || len(count()) != 2 {
		t.Errorf("%v after an hour at most, error %v; expected two", count(), err)
	}
	if err := b.removeUnfinished(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if left := count(); len(left) != 1 || left[0] != other {
		t.Errorf("%v left, expected %s", left, other)
	}
}
