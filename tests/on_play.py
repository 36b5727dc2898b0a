"""Where things stand on the sheet Play, for tests that read them out of a file."""

from cellformer.exporters.model.block_sheets import PLAY, PROMPT_COL
from cellformer.exporters.model.plan import AFTER_EVERY_TOKEN, AFTER_LAST_TOKEN

SENTENCE = (PLAY, AFTER_EVERY_TOKEN["sentence"] + 1, PROMPT_COL)  # in every workbook
MESSAGE = (PLAY, AFTER_EVERY_TOKEN["sentence"] + 2, PROMPT_COL)
TEXT = (PLAY, AFTER_EVERY_TOKEN["text"], PROMPT_COL)
EXPECTED_ROW = AFTER_EVERY_TOKEN["expected"]
RANKS_ROW = AFTER_EVERY_TOKEN["ranking"] + 2  # of the likeliest word
SETTINGS_ROW = AFTER_EVERY_TOKEN["settings"] + 1
PICK_ROW = AFTER_EVERY_TOKEN["tokens"] + 2
PROMPT_ROW, FROM_ROW, ID_ROW = PICK_ROW + 1, PICK_ROW + 3, PICK_ROW + 5
WORDS_ROW = AFTER_EVERY_TOKEN["every word"] + 3
# of many words, or a masked one: after one token alone
TEXT_OF_LAST = (PLAY, AFTER_LAST_TOKEN["text"], PROMPT_COL)
RANKS_OF_LAST = AFTER_LAST_TOKEN["ranking"] + 2
