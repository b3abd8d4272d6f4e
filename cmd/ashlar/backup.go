package main

import (
	"fmt"
	"os"
	"time"

	"ashlar/app/command"

	"github.com/spf13/cobra"
)

func backupCommand() *cobra.Command {
	var b command.Backup
	var every time.Duration
	c := &cobra.Command{
		Use:         "backup --data DIR --to DIR|s3://BUCKET/PREFIX [--network NAME]... [--keep N] [--every 24h]",
		Short:       "Back up accounts and networks; also works while a server is running",
		Annotations: leaves("a backup that was under way is not complete; earlier ones stay, and the next uses what was copied"),
		Long: `Copies the accounts and all networks, each as of one moment, to a folder or an S3
bucket. Files that the target already has are not stored again. The server answers and
follows meanwhile; one that is not running can be started once the backup has begun
to write to the target. A network that is being imported, or whose store does not open,
cannot be copied: the others are backed up, and the command fails and names it.

A backup may be stopped at any time and run again: what was copied is used, and earlier
backups stay as they are. A target takes one backup at a time.

A bucket's server is named by AWS_ENDPOINT_URL, its region by AWS_REGION. Credentials
come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from the file
AWS_SHARED_CREDENTIALS_FILE, or from the machine on AWS.`,
		Example: `  ashlar backup --data data --to /mnt/backups --keep 7
  AWS_ENDPOINT_URL=https://s3.example.org ashlar backup --data data --to s3://backups/ashlar`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := need(c, "data", b.Data); err != nil {
				return err
			}
			if err := need(c, "to", b.To); err != nil {
				return err
			}
			if b.Keep < 0 {
				return fmt.Errorf("%w: --keep %d: expected 0 or more", errUsage, b.Keep)
			}
			if !c.Flags().Changed("every") {
				return b.Run(c.Context(), os.Stderr)
			}
			if every < time.Minute {
				return fmt.Errorf("%w: --every %v: expected at least 1m; see %s --help", errUsage, every, c.CommandPath())
			}
			return b.Repeat(c.Context(), every, os.Stderr)
		},
	}
	c.Flags().DurationVar(&every, "every", 0, "make a backup again and again with this time between two, at least 1m, until interrupted")
	c.Flags().StringVar(&b.Data, "data", "", "data directory")
	c.Flags().StringVar(&b.To, "to", "", "folder, or s3://BUCKET/PREFIX")
	c.Flags().StringArrayVar(&b.Networks, "network", nil, "network to back up; may be repeated (default: all, and the accounts)")
	c.Flags().IntVar(&b.Keep, "keep", 0, "remove all backups but the newest, this many, and as many complete ones (default: keep all)")
	c.Flags().BoolVar(&b.Rehash, "rehash", false, "read every file, also those that did not change since the last backup")
	return c
}

func restoreCommand() *cobra.Command {
	var r command.Restore
	var list, check bool
	c := &cobra.Command{
		Use:         "restore --from DIR|s3://BUCKET/PREFIX --data DIR [--backup NAME] [--network NAME]... [--accounts] [--replace]",
		Short:       "Restore accounts and networks from a backup, or list and check backups",
		Annotations: leaves("the same command continues"),
		Long: `Reads a backup and checks the hash of every file before anything in the data directory
changes; then each store is replaced by one rename. No server may have the stores open.

A restore may be stopped at any time and run again: files that were read are used. While
it runs, the data directory needs space for the old and the new stores.

The certificates and the Engine API's secrets in a data directory are not part of a
backup: they are made again.`,
		Example: `  ashlar restore --from /mnt/backups --list
  ashlar restore --from /mnt/backups --check
  ashlar restore --from /mnt/backups --data data
  ashlar restore --from s3://backups/ashlar --data data --network sepolia --replace
  ashlar restore --from /mnt/backups --data data --accounts --replace`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if list || check {
				c.Annotations = leaves("nothing was changed")
			}
			if err := need(c, "from", r.From); err != nil {
				return err
			}
			switch {
			case list:
				return r.List(c.Context(), os.Stdout)
			case check:
				return r.Check(c.Context(), os.Stderr)
			}
			if err := need(c, "data", r.Data); err != nil {
				return err
			}
			return r.Run(c.Context(), os.Stderr)
		},
	}
	c.Flags().StringVar(&r.From, "from", "", "folder, or s3://BUCKET/PREFIX")
	c.Flags().StringVar(&r.Data, "data", "", "data directory; created if it does not exist")
	c.Flags().StringVar(&r.Backup, "backup", "", "name of the backup (default: the newest)")
	c.Flags().StringArrayVar(&r.Networks, "network", nil, "network to restore; may be repeated (default: all, and the accounts)")
	c.Flags().BoolVar(&r.Accounts, "accounts", false, "restore the accounts, and no networks but those that --network names")
	c.Flags().BoolVar(&r.Replace, "replace", false, "replace stores that exist")
	c.Flags().BoolVar(&list, "list", false, "list the backups")
	c.Flags().BoolVar(&check, "check", false, "read all of the backup, compare the hashes, and change nothing")
	exclusive(c, "list", "check")
	return c
}
