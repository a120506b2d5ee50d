# Pinned memory that is used again as torch allows, operators that choose elements, and what torch computes another way under a mode.
import torch
from torch.utils.data import DataLoader, TensorDataset
d = torch.zeros(4096, device="cuda")
for i in range(3):
    b = torch.empty(4096, pin_memory=True); b.fill_(i); d.copy_(b, non_blocking=True); del b
m = torch.nn.Linear(4, 2).cuda()
ds = TensorDataset(torch.randn(64, 4))
for (a,) in DataLoader(ds, batch_size=8, pin_memory=True):
    a.mul_(2); m(a.cuda(non_blocking=True)).sum().backward()
y = d.to("cpu", non_blocking=True); del y; z = torch.empty(4096, pin_memory=True); z.fill_(1)
y = d.to("cpu", non_blocking=True); torch.cuda.synchronize()
print(torch.cond(y.sum() > 3, lambda a: a + 1, lambda a: a - 1, (y,))[0].item())
print(torch.jit.trace(lambda a: a * 2 + 1, (y,))(y)[0].item())
big = torch.zeros(4096).pin_memory(); c2 = torch.empty(16, device="cuda"); ix = torch.tensor([100, 200])
c2.copy_(big[:16], non_blocking=True)
big[ix] = 5; big.index_add_(0, ix, torch.ones(2)); print(big[ix])
print(y)
