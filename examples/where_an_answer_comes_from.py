"""Why does the dialogue game say Tarso? List the strongest edges of the answer, and cut each."""

import cellformer as cf

model = cf.load("dialogue-game")
ids = model.vocabulary.encode("<BOS> Pietro chiama Paolo")
words = [model.vocabulary.texts[i] for i in ids]
(tarso,), (vice,) = (model.vocabulary.encode(word, special=False) for word in ("Tarso", "vice"))
answer = cf.AnswerGraph(model.graph(ids), len(ids) - 1, tarso, vice)
cuts = cf.Cuts(answer)
print(f"Tarso leads vice by {answer.lead:.2f}")
for edge in answer.edges()[:5]:
    source, reader, value = edge
    real = cuts.leads([[edge.ends]])[0] - answer.lead
    where = f"{source.short} at {words[source.token]} -> {reader.short}"
    print(f"{where:<28} {value:+.2f}; without it the lead changes by {real:+.2f}")
