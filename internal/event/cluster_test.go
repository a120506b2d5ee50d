package event

import "testing"

// TestClusterOf checks that BlockIn inverts ClusterOf, with the coordinates that the manual defines.
func TestClusterOf(t *testing.T) {
	l := Launch{Grid: Dim3{X: 4, Y: 6, Z: 2}, Cluster: Dim3{X: 2, Y: 3, Z: 1}}
	seen := map[[2]uint32]bool{}
	for b := range uint32(l.Grid.Count()) {
		cluster, rank := l.ClusterOf(b)
		at, in := l.Grid.At(uint64(b)), l.ClusterShape().At(uint64(rank))
		if c := l.Clusters().At(uint64(cluster)); c.X*2+in.X != at.X || c.Y*3+in.Y != at.Y || c.Z+in.Z != at.Z || l.BlockIn(cluster, rank) != b || rank >= 6 || cluster >= 8 {
			t.Errorf("block %v: cluster %d %v, rank %d %v", at, cluster, c, rank, in)
		}
		seen[[2]uint32{cluster, rank}] = true
	}
	if len(seen) != 48 {
		t.Errorf("%d pairs of cluster and rank", len(seen))
	}
	alone := Launch{Grid: Dim3{X: 3, Y: 1, Z: 1}}
	if cluster, rank := alone.ClusterOf(2); cluster != 2 || rank != 0 || alone.BlockIn(2, 0) != 2 {
		t.Errorf("cluster %d, rank %d", cluster, rank)
	}
}
