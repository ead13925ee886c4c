package kube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/pkg/v3/flags"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

// NewEtcdCommand returns etcd as upstream ships it. etcd parses its own flags, help included.
func NewEtcdCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "etcd",
		Short:              "The key-value store behind the API server",
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			etcdmain.Main(append([]string{"etcd"}, args...))
		},
	}
}

// RunEtcd runs one etcd member with etcd's own flags until ctx is done, then closes it: what was acknowledged is on
// disk. It fails when etcd cannot start or stops by itself.
func RunEtcd(ctx context.Context, args []string) error {
	cfg, err := etcdConfig(args)
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start etcd on %s: %w", cfg.Dir, err)
	}
	defer e.Close()

	select {
	case <-ctx.Done():
		return nil
	case err := <-e.Err():
		return fmt.Errorf("serve etcd: %w", err)
	case <-e.Server.StopNotify():
		return errors.New("etcd stopped by itself; its last messages are in the log")
	}
}

// etcdConfig reads etcd's command line. The URL lists have to be taken from the flags by hand: etcd registers them
// with values of their own and copies them over only in its main package.
func etcdConfig(args []string) (*embed.Config, error) {
	cfg := embed.NewConfig()
	fs := flag.NewFlagSet("etcd", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	cfg.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("parse etcd flags: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("etcd takes no arguments, got %q", fs.Args())
	}
	cfg.ListenPeerUrls = flags.UniqueURLsFromFlag(fs, "listen-peer-urls")
	cfg.AdvertisePeerUrls = flags.UniqueURLsFromFlag(fs, "initial-advertise-peer-urls")
	cfg.ListenClientUrls = flags.UniqueURLsFromFlag(fs, "listen-client-urls")
	cfg.AdvertiseClientUrls = flags.UniqueURLsFromFlag(fs, "advertise-client-urls")
	cfg.ListenMetricsUrls = flags.UniqueURLsFromFlag(fs, "listen-metrics-urls")
	cfg.CipherSuites = flags.StringsFromFlag(fs, "cipher-suites")
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("check etcd flags: %w", err)
	}
	return cfg, nil
}
