package backup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a target in an S3 bucket.
type bucket struct {
	place  string // as given
	client *minio.Client
	name   string
	prefix string // empty, or ends with a slash
}

// openBucket opens BUCKET/PREFIX. As with AWS's own tools, the environment names the server
// (AWS_ENDPOINT_URL), the region (AWS_REGION) and the credentials, or a file with them
// (AWS_SHARED_CREDENTIALS_FILE); on AWS, those of the machine are used otherwise.
func openBucket(place, rest string) (*bucket, error) {
	name, prefix, _ := strings.Cut(rest, "/")
	if name == "" {
		return nil, fmt.Errorf("target %q: missing bucket (want s3://BUCKET/PREFIX)", place)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	server, err := url.Parse(endpoint)
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL %q: expected a URL such as https://s3.example.org", endpoint)
	}
	if strings.Trim(server.Path, "/") != "" || server.RawQuery != "" || server.User != nil { // the client would leave them out
		return nil, fmt.Errorf("AWS_ENDPOINT_URL: %s has more than a host (want a URL such as https://s3.example.org; the bucket is in s3://BUCKET/PREFIX)", server.Redacted())
	}
	if err := checkCredentialsFile(); err != nil {
		return nil, err
	}
	client, err := minio.New(server.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure: server.Scheme == "https",
		Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", place, err)
	}
	return &bucket{place: place, client: client, name: name, prefix: prefix}, nil
}

// checkCredentialsFile returns an error if the environment names a file with credentials that cannot be read, unless they are
// elsewhere. The client would send requests without credentials, and the server's answer, access denied, says nothing of the file.
func checkCredentialsFile() error {
	path := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if path == "" {
		return nil
	}
	// The second has those in the file of AWS_CONFIG_FILE, too.
	local := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
	if found, err := local.GetWithContext(nil); err == nil && found.AccessKeyID != "" {
		return nil
	}
	if _, err := os.ReadFile(path); err != nil {
		return fmt.Errorf("AWS_SHARED_CREDENTIALS_FILE: %w", err)
	}
	return nil
}

func (b *bucket) String() string { return b.place }

// List implements Target.
func (b *bucket) List(ctx context.Context, folder string, found func(name string, bytes int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing if it failed
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + folder, Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("list %s: %w", b.place, b.explained(o.Err))
		}
		found(strings.TrimPrefix(o.Key, b.prefix), o.Size)
	}
	return ctx.Err()
}

// explained adds to the refusal of a request that it was sent without credentials, because there are none or only a part of
// them. The server says that access is denied, as for wrong ones.
func (b *bucket) explained(err error) error {
	if minio.ToErrorResponse(err).StatusCode != http.StatusForbidden {
		return err
	}
	if found, unknown := b.client.GetCreds(); unknown != nil || !found.SignerType.IsAnonymous() {
		return err
	}
	return fmt.Errorf("%w: no credentials were found (want both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a file that AWS_SHARED_CREDENTIALS_FILE names, with aws_access_key_id and aws_secret_access_key in its section [default])", err)
}

// Put implements Target.
func (b *bucket) Put(ctx context.Context, name string, content io.Reader, bytes int64) error {
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, content, bytes, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return fmt.Errorf("store %s in %s: %w", name, b.place, err)
	}
	return nil
}

// Get implements Target.
func (b *bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	content, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", name, b.place, err)
	}
	return bucketObject{content, name, b.place}, nil
}

// Remove implements Target.
func (b *bucket) Remove(ctx context.Context, name string) error {
	if err := b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("remove %s in %s: %w", name, b.place, err)
	}
	return nil
}

// unfinishedFor is how old the uploads are that removeUnfinished ends.
const unfinishedFor = 24 * time.Hour

// removeUnfinished ends uploads of contents that began before a time and that a killed process left:
// their parts are not listed as objects, and are paid for. Some servers and credentials do not
// allow listing or ending uploads.
func (b *bucket) removeUnfinished(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing if it failed
	for upload := range b.client.ListIncompleteUploads(ctx, b.name, b.prefix+objectsFolder, true) {
		err := upload.Err
		if err == nil && upload.Initiated.Before(before) {
			err = minio.Core{Client: b.client}.AbortMultipartUpload(ctx, b.name, upload.Key, upload.UploadID)
		}
		switch code := minio.ToErrorResponse(err).StatusCode; {
		case code == http.StatusForbidden, code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
			return nil
		case code == http.StatusNotFound: // it has ended meanwhile
		case err != nil:
			return fmt.Errorf("remove unfinished uploads from %s: %w", b.place, err)
		}
	}
	return ctx.Err()
}

// bucketObject names the object in errors of reading it.
type bucketObject struct {
	io.ReadCloser
	name, place string
}

func (o bucketObject) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
			err = fmt.Errorf("%w: %w", ErrNoBackup, err)
		}
		err = fmt.Errorf("read %s in %s: %w", o.name, o.place, err)
	}
	return n, err
}
