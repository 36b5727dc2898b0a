"""The table of README.md: what a model writes after 200 steps of GRPO (the workbook `reward`).

Three random seeds and three weights of the KL divergence; the model first imitates random books.
"""

from cellformer.workbooks.reward import game
from cellformer.workbooks.reward.learning import imitator, learn, measured


def main() -> None:
    """Print the table."""
    for seed in range(3):
        start = imitator(seed)
        print(f"seed {seed}, before: {measured(start).right:.1%} right")
        for penalty in (0.02, 0.2, 0.5):
            *_, last = learn(start, game.random_numbers(seed), game.BALANCED, penalty)
            right, variety, favourite = measured(last.weights)
            print(f"beta {penalty}: {right:.1%} right, entropy {variety:.2f}, {favourite}")


if __name__ == "__main__":
    main()
