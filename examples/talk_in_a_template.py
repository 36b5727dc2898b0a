"""What a person says becomes the text that a chat model reads: its template, and the pieces of it
that a workbook computes with."""

import cellformer as cf

template = cf.ChatTemplate(
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)  # of a checkpoint: cf.load("folder").vocabulary.chat
print(template.write(" What is the capital of France? ", system="Be brief."))
pieces = template.pieces
print(repr(pieces.middle), repr(pieces.closing), pieces.strips_you)
