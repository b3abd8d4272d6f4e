package main

import (
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/app/store"
)

func TestTeamsFromTheShell(t *testing.T) {
	s := shell{t, t.TempDir()}
	for _, email := range []string{"owner@example.org", "other@example.org"} {
		s.do(exitDone, "account", "create", email)
	}
	id := s.says(`^([0-9a-f]{16})\n$`, "team", "create", "Stone & Sons", "--owner", "owner@example.org")
	s.says(`(?m)^`+id+`  Stone & Sons +1 +\d{4}-\S+ \S+ +-$`, "team", "list")
	s.says(`(?m)^`+id+`  Stone & Sons +team +\d{4}-`, "account", "list")
	for _, c := range []struct{ args, members string }{
		{"add " + id + " other@example.org --role viewer", `(?m)other@example.org +viewer`},
		{"role " + id + " other@example.org member", `(?m)other@example.org +member`},
		{"rename " + id + " Granite", `owner@example.org +owner`},
		{"role Granite other@example.org owner", `(?m)other@example.org +owner`},
		{"remove Granite owner@example.org", `(?m)^ACCOUNT.*\n\S+ +other@example.org +owner[^\n]*\n$`},
	} {
		s.says("^"+id+"\n$", append([]string{"team"}, strings.Fields(c.args)...)...)
		s.says(c.members, "team", "members", id)
	}
	s.says(`"email": ?"other@example.org"`, "team", "members", "Granite", "--json")
	s.says(`"team": ?"Granite"`, "team", "list", "--json")
	s.says(`^[0-9a-f]{32}\ninvitation [0-9a-f]{16} is valid until .*\nlink: http://localhost:8545/teams/join\?invitation=`, "team", "invite", "Granite", "new@example.org", "--role", "viewer", "--valid", "1h")
	s.says(`new@example.org +viewer of `+id, "account", "invitations")
	key := s.says(`^([0-9a-f]{32})\n$`, "key", "create", "--name", "shared", "--account", id)
	s.says(`(?m)^[0-9a-f]{16}  shared +Granite +\d{4}-`, "key", "list")
	for _, c := range []struct {
		code       int
		args, says string
	}{
		{exitFailed, "team remove Granite other@example.org", `the account is the only owner of the team "Granite"`},
		{exitFailed, "account delete other@example.org --yes", `the account is the only owner of the team "Granite"`},
		{exitFailed, "team add Granite nobody@example.org", "no such account"},
		{exitFailed, "team add Marble other@example.org", `no such team: "Marble"; see ashlar team list`},
		{exitFailed, "team role Granite other@example.org king", `unknown role "king" (want viewer, member or owner)`},
		{exitFailed, "account reset " + id, "nobody signs in to it"},
		{exitUsage, "team delete Granite", "give --yes to delete it"},
	} {
		if out := s.do(c.code, strings.Fields(c.args)...); !strings.Contains(out, c.says) {
			t.Errorf("%s: %s", c.args, out)
		}
	}
	s.says("^"+id+"\n$", "team", "delete", "Granite", "--yes")
	if out := s.do(exitDone, "team", "list"); strings.Contains(out, id) {
		t.Errorf("a deleted team is listed: %s", out)
	}
	s.do(exitFailed, "key", "revoke", key)
	s.do(exitDone, "account", "delete", "other@example.org", "--yes")
}

// A team whose row a newer program wrote is listed with the others.
func TestUnreadableTeamIsListed(t *testing.T) {
	s := shell{t, t.TempDir()}
	s.do(exitDone, "account", "create", "owner@example.org")
	for _, name := range []string{"Granite", "Marble"} {
		s.do(exitDone, "team", "create", name, "--owner", "owner@example.org")
	}
	id := s.says(`(?m)^([0-9a-f]{16})  Granite`, "team", "list")
	var team account.ID
	opened, err := store.Dir(s.data).OpenAccounts(nil)
	if err == nil {
		err = team.UnmarshalText([]byte(id))
	}
	if err != nil {
		t.Fatal(err)
	}
	revisions := account.Tables()[1]
	b := opened.NewBatch()
	b.Put(revisions, team[:], 1, []byte("\x01"+`{"role":"user","created":1,"team":{"name":"Granite","moons":1}}`))
	if err := opened.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	s.says(`(?m)^`+id+`  Granite +unknown `, "team", "list")
	s.says(`(?m)  Marble +1 `, "team", "list")
}
