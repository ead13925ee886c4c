package unjoin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// orphans decides what becomes of what was propagated: what was asked for, what was said before if the cluster is going
// already, what the user at the terminal says, or the contract's default, said aloud.
func (o *Options) orphans(ctx context.Context, c *clusterv1alpha1.Cluster, propagated []string) (bool, error) {
	said := o.Cascade
	if said == "" {
		said = c.Annotations[names.ClusterCascadeAnnotation]
	}
	if said == "" && (len(propagated) == 0 || !c.DeletionTimestamp.IsZero()) {
		said = names.CascadeDelete // it is about nothing, or is being done
	}
	if said == "" && o.Terminal {
		var err error
		if said, err = o.ask(ctx, propagated); err != nil {
			return false, err
		}
	}
	if said == "" {
		said = names.CascadeDelete
		o.say("deleting what was propagated to cluster %s: %s; to leave it there: %s", o.Name, some(propagated), o.Line("--cascade="+names.CascadeOrphan))
	}
	if said == names.CascadeDelete && len(propagated) > 0 && !isReady(c) {
		o.say("cluster %s is not ready: what was propagated to it may stay there: %s", o.Name, some(propagated))
	}
	return said == names.CascadeOrphan, nil
}

// ask wants one of the two words on the terminal. Anything else, Ctrl-C and the end of input remove nothing.
func (o *Options) ask(ctx context.Context, propagated []string) (string, error) {
	_, err := fmt.Fprintf(o.ErrOut, "There is what was propagated to cluster %s: %s.\nType %s to delete it there, or %s to leave it there, and then press enter: ",
		o.Name, some(propagated), names.CascadeDelete, names.CascadeOrphan)
	if err != nil {
		return "", err
	}
	answers := make(chan string, 1)
	go func() {
		// What could be read of a line that does not end is no answer, either.
		line, _ := bufio.NewReader(o.In).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
	case answer := <-answers:
		if answer == names.CascadeDelete || answer == names.CascadeOrphan {
			return answer, nil
		}
	}
	return "", fmt.Errorf("neither %s nor %s: nothing was removed", names.CascadeDelete, names.CascadeOrphan)
}

// some lists things on one line, however many there are.
func some(things []string) string {
	const most = 5
	if len(things) <= most {
		return strings.Join(things, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(things[:most], ", "), len(things)-most)
}

// preview prints what would become of the cluster.
func (o *Options) preview(c *clusterv1alpha1.Cluster, propagated []string) error {
	errs := []error{o.print("control plane: delete Cluster %s", c.Name)}
	what := "delete"
	if o.Cascade == names.CascadeOrphan {
		what = "keep"
	}
	for _, p := range propagated {
		errs = append(errs, o.print("member cluster: %s %s", what, p))
	}
	return errors.Join(errs...)
}

func (o *Options) print(format string, args ...any) error {
	_, err := fmt.Fprintf(o.Out, format+"\n", args...)
	return err
}
