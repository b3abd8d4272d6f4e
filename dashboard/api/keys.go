package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"ashlar/account"
)

// show returns the ID in the path. Keys are not named by their names here.
func (c *call) show() (string, error) {
	var id account.KeyID
	if id.UnmarshalText([]byte(c.r.PathValue("key"))) != nil {
		return "", account.ErrNoKey
	}
	return id.String(), nil
}

func (c *call) list() (int, any, error) {
	all, err := c.keys.List(c.r.Context())
	if all == nil {
		all = []account.Key{}
	}
	return http.StatusOK, all, err
}

func (c *call) create() (int, any, error) {
	var n account.NewKey
	if err := c.read(&n); err != nil {
		return 0, nil, err
	}
	issued, err := c.keys.Create(c.r.Context(), n)
	return http.StatusCreated, issued, err
}

func (c *call) get() (int, any, error) {
	id, err := c.show()
	if err != nil {
		return 0, nil, err
	}
	k, err := c.keys.Find(id)
	return c.tagged(k, err)
}

// tagged answers with a key, and its version for If-Match.
func (c *call) tagged(k account.Key, err error) (int, any, error) {
	if err == nil {
		c.header.Set("ETag", `"`+k.Version()+`"`)
	}
	return http.StatusOK, k, err
}

// versions returns the versions of a key that the request is for; none: it is for any.
func (c *call) versions() (all []string) {
	for _, field := range c.r.Header.Values("If-Match") {
		for tag := range strings.SplitSeq(field, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" {
				return nil
			}
			all = append(all, strings.Trim(tag, `"`)) // a weak one keeps its W/, which matches no version
		}
	}
	return all
}

func (c *call) edit() (int, any, error) {
	var e struct {
		Name    *string        `json:"name"`
		Rules   *account.Rules `json:"rules"`
		Expires *time.Time     `json:"expires"`
	}
	id, err := c.show()
	if err == nil {
		err = c.read(&e)
	}
	if err != nil {
		return 0, nil, err
	}
	k, err := c.keys.Edit(c.r.Context(), id, account.KeyEdit{Name: e.Name, Rules: e.Rules, Expires: e.Expires, Versions: c.versions()})
	return c.tagged(k, err)
}

func (c *call) revoke() (int, any, error) {
	id, err := c.show()
	if err != nil {
		return 0, nil, err
	}
	k, err := c.keys.Revoke(c.r.Context(), id)
	return http.StatusOK, k, err
}

func (c *call) rotate() (int, any, error) {
	var asked struct {
		OverlapSeconds int64 `json:"overlapSeconds"`
	}
	id, err := c.show()
	if err == nil {
		err = c.read(&asked)
	}
	if err != nil {
		return 0, nil, err
	}
	if asked.OverlapSeconds < 0 || asked.OverlapSeconds > int64(account.MaxOverlap/time.Second) {
		return 0, nil, &account.Invalid{Field: account.FieldOverlap, Problem: "overlapSeconds: expected from 0 to " + strconv.FormatInt(int64(account.MaxOverlap/time.Second), 10)}
	}
	issued, err := c.keys.Rotate(c.r.Context(), id, time.Duration(asked.OverlapSeconds)*time.Second)
	return http.StatusOK, issued, err
}
