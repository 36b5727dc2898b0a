"""Why the dialogue game says Tarso: the strongest edges of the answer, and each cut for real."""

import cellformer as cf
from cellformer.engine.studies.answer_graph import AnswerGraph, short
from cellformer.engine.studies.edge_cuts import Cuts, ends

model = cf.load("dialogue-game")
ids = model.vocabulary.encode("<BOS> Pietro chiama Paolo")
words = [model.vocabulary.texts[i] for i in ids]
(tarso,), (vice,) = (model.vocabulary.encode(word, special=False) for word in ("Tarso", "vice"))
answer = AnswerGraph(model.graph(ids), len(ids) - 1, tarso, vice)
cuts = Cuts(answer)
print(f"Tarso leads vice by {answer.lead:.2f}")
for edge in answer.edges()[:5]:
    source, reader, value = edge
    real = cuts.leads([[ends(edge)]])[0] - answer.lead
    where = f"{short(source.name)} at {words[source.token]} -> {short(reader.name)}"
    print(f"{where:<28} {value:+.2f}; without it the lead changes by {real:+.2f}")
