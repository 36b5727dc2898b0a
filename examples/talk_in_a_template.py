"""Turn a person's words into the text for a chat model: its template, and the pieces that a
workbook uses."""

import cellformer as cf

template = cf.ChatTemplate(
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)  # of a checkpoint: cf.load("folder").vocabulary.chat
print(template.write(" What is the capital of France? ", system="Be brief."))
pieces = template.pieces
print(repr(pieces.middle), repr(pieces.closing), pieces.strips_you)
