# expect: exit 0
# Before the host touches the memory of a copy that does not wait, it waits for the copy.
import torch

x = torch.arange(4096.0, device="cuda") * 2

y = x.to("cpu", non_blocking=True)
torch.cuda.synchronize()
print(y.sum())

# The first half of a buffer in pinned memory is free once its copy has ended. The other half has no copy.
buffer = torch.zeros(4096).pin_memory()
first = buffer[:2048].to("cuda", non_blocking=True)
copied = torch.cuda.Event()
copied.record()
buffer[2048:].fill_(2)
copied.synchronize()
buffer[:2048].fill_(1)
second = buffer.to("cuda", non_blocking=True)
print((first + second[:2048]).sum().item())
