package tables

import (
	"context"

	"github.com/azconc/azconc/pkg/fence"
)

// FenceRow is the row that stores the latest fence in every partition that is written under a lock.
const FenceRow = fence.Key

// fenceEntity is the entity in FenceRow.
type fenceEntity struct {
	Fence int64 `json:"azconcfence"`
}

// claim makes a transaction fenced: it asserts that no later holder has written, and stores the holder's fence if it is
// not yet stored in this partition.
func (tx *Tx) claim(ctx context.Context, holder fence.Holder) error {
	var stored fenceEntity
	if _, err := tx.Get(ctx, FenceRow, &stored); err != nil {
		return err
	}
	mine := holder.Fence()
	if err := mine.Admit(tx.t.Resource, fence.Token(stored.Fence)); err != nil {
		return err
	}
	if fence.Token(stored.Fence) == mine {
		return nil
	}
	return tx.Upsert(FenceRow, fenceEntity{int64(mine)})
}
