"""Why does a head look there? Split its score by the parts that wrote the query and the key."""

import numpy as np

import cellformer as cf

split = cf.why("dialogue-game", "1.2", query="Paolo", key="chiama")
rival = cf.why("dialogue-game", "1.2", query="Paolo", key="Pietro")
print(f"score with chiama {split.score:.3f}, with Pietro {rival.score:.3f}")
difference = split.less(rival)  # a share of all keys cancels, as in softmax
for at in np.argsort(-difference, axis=None)[:3]:
    i, j = np.unravel_index(at, difference.shape)
    print(f"{split.of_query[i]} x {split.of_key[j]}: {difference[i, j]:+.3f}")
print(f"all pairs {difference.sum():.3f}, of {difference.size}")
