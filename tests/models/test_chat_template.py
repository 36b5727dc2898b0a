"""Chat templates: rendered as transformers does, whatever they contain; hostile ones end in a
line."""

import json
from pathlib import Path

import chatting
import pytest
from conftest import cli

from cellformer.engine import InputError
from cellformer.engine.models import checkpoint
from cellformer.engine.text.chat_template import PROBES, ChatTemplate, Message, of_model, of_user

TOKENS = (("bos_token", "<|im_start|>"), ("eos_token", "<|im_end|>"))
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
LLAMA3 = (
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
    "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
    "{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
    "{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
THINKS = (
    "{%- for message in messages %}{%- if message.role == 'assistant' %}\n"
    "{%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}\n"
    "{{- '<|im_start|>assistant\n' + content + '<|im_end|>\n' }}{%- else %}\n"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}\n"
    "{%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n"
    "{{- '<|im_start|>assistant\n<think>\n\n</think>\n\n' }}\n{%- endif %}\n"
)
GENERATION = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% else %}{{ m.role }}: {{ m.content }}\n{% endif %}{% endfor %}"
)
NAMED = (
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% if ns.n > 9 %}{% break %}{% endif %}{{ dict(a=m) | tojson(indent=1) }}{% endfor %}"
    "{{ tools is none }}{{ eos_token }}{{ strftime_now('%Y') | length }}"
)
TEMPLATES = {
    "chatml": chatting.CHATML,
    "chatml trimmed": chatting.TRIMS,
    "llama 2": LLAMA2,
    "llama 3": LLAMA3,
    "gemma": GEMMA,
    "qwen 3": THINKS,
    "generation": GENERATION,
    "json": NAMED,
    "upper": "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
    "blocks": " {% for m in messages %}\n  {% if 1 %}\n{{ m.content }}\n {% endif %}\n{% endfor %}",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEMPLATES)
def test_text_and_ids_are_those_of_transformers(name: str, tmp_path, transformers) -> None:
    folder = chatting.write(tmp_path / "model", TEMPLATES[name])
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = checkpoint.load(folder).vocabulary
    earlier = (of_user("a b"), of_model(" It is\nso. "))
    asked: list[tuple[str, str, tuple[Message, ...]]] = [(x, "", ()) for x in PROBES]
    asked += [("What?", "Be brief. ", ()), ("And  now?\n", "", earlier)]
    for you, system, turns in asked:
        messages = [{"role": "system", "content": system}] if system else []
        messages += [*turns, of_user(you)]
        say = {"add_generation_prompt": True, "return_dict": False}
        try:
            wanted = theirs.apply_chat_template(messages, tokenize=False, **say)
        except Exception as error:
            with pytest.raises(InputError, match=str(error)):
                ours.chat.write(you, system, turns)
            continue
        assert ours.chat.write(you, system, turns) == wanted
        ids = theirs.apply_chat_template(messages, tokenize=True, **say)
        assert ours.encode(wanted, special=False) == ids


HOSTILE = {
    "its classes": ("{{ ''.__class__.__mro__ }}", "unsafe"),
    "a program": ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "unsafe"),
    "a file": ("{% include '/etc/passwd' %}", "no loader"),
    "a module": ("{% import 'os' as os %}{{ os.getcwd() }}", "no loader"),
    "what it is given": ("{{ messages.append(1) }}", "unsafe"),
    "a long loop": ("{% for i in range(10 ** 9) %}{% endfor %}", "Range too big"),
    "loops in loops": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "time or memory|did not finish within",
    ),
    "a large text": ("{{ 'a' * 10 ** 10 }}", "Memory"),
    "a long text": ("{% for i in range(99999) %}{{ 'much' * 9 }}{% endfor %}", "characters"),
    "itself": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
    "underscores": ("{% set n = namespace(__class__=1) %}", "namespace"),
    "no end": ("{% if messages %}", "line 1"),
    "a refusal": ("{{ raise_exception('no\nway') }}", "no way"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_templates_end_in_a_line(what: str) -> None:
    source, told = HOSTILE[what]
    with pytest.raises(InputError, match=told) as error:
        ChatTemplate(source, TOKENS).write("a")
    assert "\n" not in str(error.value) and "--chat" in str(error.value)


def test_pieces_around_what_is_typed() -> None:
    found = ChatTemplate(chatting.CHATML).pieces
    assert (found.system, found.strips_you) == ("Be kind", False)
    assert found.closing == "<|im_end|>\n<|im_start|>assistant\n"
    assert found.following == "<|im_end|>\n<|im_start|>user\n"
    found = ChatTemplate(LLAMA3, TOKENS).pieces
    assert (found.system, found.strips_you, found.strips_system) == ("", True, True)
    assert ChatTemplate(GEMMA, TOKENS).pieces.opening is None
    assert ChatTemplate(THINKS).pieces.following is None  # what it thought is left out later
    with pytest.raises(InputError, match="in a way that formulas cannot follow"):
        _ = ChatTemplate(TEMPLATES["upper"]).pieces


def test_template_of_a_file_comes_first(tmp_path: Path) -> None:
    folder = chatting.write(tmp_path / "model")
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}!")
    model = checkpoint.load(folder)
    assert model.vocabulary.chat.write("Hello") == "Hello!"
    checkpoint.save(model, tmp_path / "saved")
    assert checkpoint.load(tmp_path / "saved").vocabulary.chat == model.vocabulary.chat


def test_templates_by_name(tmp_path: Path) -> None:
    """The last one named default; what has no name is passed over."""
    folder = chatting.write(tmp_path / "model")
    named = [{"name": "default", "template": text} for text in ("no", "{{ messages[0].content }}?")]
    odd = [1, None, {"name": ["default"], "template": "no"}, {"name": {}, "template": "no"}, {}]
    path = folder / "tokenizer_config.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"chat_template": [*odd, *named, *odd]}))
    assert checkpoint.load(folder).vocabulary.chat.write("Hello") == "Hello?"


def test_command_answers_and_stops(tmp_path: Path) -> None:
    folder, asked = str(chatting.write(tmp_path / "model")), tmp_path / "asked.txt"
    asked.write_text("What is the capital of France?\n")
    say = ["--chat", "--system", "Be kind", "-n", "9"]
    answer = cli("generate", folder, *say, "--prompt", "What is the capital of France?").out
    assert cli("generate", folder, *say, "--file", asked).out == answer and len(answer) > 3
    assert cli("generate", folder, *say, "--file", asked, "--stop", answer[2:4]).out == (
        answer[: answer.index(answer[2:4])] + "\n"
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["cat-sat", "--chat"], "has no chat template"),
        (["MODEL", "--system", "a"], "--chat"),
        (["MODEL", "--chat", "--ids", "1"], "--prompt"),
        (["MODEL", "--chat", "--no-special"], "--no-special"),
        (["MODEL", "--chat", "--system", "a\x07"], "control character"),
        (["MODEL", "--file", "nowhere.txt"], "nowhere.txt"),
        (["MODEL", "--prompt", "a", "--stop", ""], "--stop"),
    ],
)
def test_misuse_gets_one_line(given: list[str], told: str, tmp_path: Path) -> None:
    folder = chatting.write(tmp_path / "model")
    done = cli("generate", *[str(folder) if x == "MODEL" else x for x in given])
    assert done.code == 2 and told in done.err and done.err.count("\n") == 1
