// Texts from outside, a sentence, a link, a file's name, made safe for a line of the page: as
// engine/cells/texts.py does for a terminal.

// characters that an error repeats
const LONGEST_REPEATED = 40;
// what controls the display instead of being displayed: also half a character, and reading orders
const HIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text as one line: spaces stay; newlines and other control characters are escaped.
 * @param {string} text
 */
export function readable(text) {
  return text.replace(HIDDEN, (letter) => {
    const code = letter.charCodeAt(0).toString(16);
    const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[letter];
    return short ?? (code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`);
  });
}

/**
 * The beginning of a text, on one line.
 * @param {string} text
 */
export function shortened(text) {
  const whole = [...text.slice(0, 2 * LONGEST_REPEATED)];
  return readable(whole.length > LONGEST_REPEATED ? `${whole.slice(0, LONGEST_REPEATED - 1).join("")}…` : whole.join(""));
}
