"""`python -m benchmarks NAME ...`: run, print, save, and rewrite the documentation's tables.

`python -m benchmarks hunt` looks for false proofs instead, and has options of its own (`--help`), and
`python -m benchmarks faults` kills programs, damages files and takes clusters away.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.adaboost import adaboost_stumps
from benchmarks.additive import additive_classes
from benchmarks.boosting import boosting_predict, boosting_small, boosting_tall
from benchmarks.boosting_memory import boosting_memory
from benchmarks.cold_start import cold_start
from benchmarks.elastic_path import elastic_path
from benchmarks.faults import command as faults
from benchmarks.forest import forest_mnist, forest_tall
from benchmarks.glm import gamma_tall, logistic_errors, poisson_errors, poisson_tall
from benchmarks.harness import Options, contest
from benchmarks.history import HISTORY, MOST_BUSY, busy_share, keep_record
from benchmarks.hunts import command as hunts
from benchmarks.import_time import import_time
from benchmarks.joint_svm import joint_svm_mnist
from benchmarks.kernel_features import rbf_million
from benchmarks.kmeans import kmeans_many, kmeans_mnist, kmeans_tall
from benchmarks.linear_svm import svm_mnist, svm_sparse, svm_tall
from benchmarks.lle import lle_mnist, lle_swiss_roll
from benchmarks.logistic import logistic_tall, softmax_mnist
from benchmarks.mixture import mixture_missing, mixture_tall, mixture_wide
from benchmarks.naive_bayes import naive_bayes_mnist
from benchmarks.network_bounds import network_bounds
from benchmarks.network_epochs import network_epochs
from benchmarks.network_tables import network_tables
from benchmarks.networks import networks_mnist, networks_quality
from benchmarks.out_of_core import out_of_core
from benchmarks.pca import pca_mnist, pca_randomised, pca_tall, svd_sparse
from benchmarks.ppca import ppca_missing
from benchmarks.predict import predict
from benchmarks.reporting import DOCS, RESULTS, Report, plain, say, summary, write, write_summaries
from benchmarks.robust_pca import robust_pca
from benchmarks.small_tables import small_tables
from benchmarks.svc import svc_classes, svc_linear, svc_mnist, svc_narrow, svc_predict
from benchmarks.tree import best_tree, tree_tall
from benchmarks.wide_sparse import wide_sparse

QUICK = 20  # --quick divides sizes by this

BENCHMARKS: dict[str, tuple[str, Callable[[str, Options], Report]]] = {
    "pca_mnist": ("PCA of MNIST", partial(contest, pca_mnist)),
    "pca_tall": ("PCA of many rows", partial(contest, pca_tall)),
    "pca_randomised": ("randomised PCA of MNIST", partial(contest, pca_randomised)),
    "svd_sparse": ("leading singular vectors of sparse rows", partial(contest, svd_sparse)),
    "robust_pca": ("robust PCA", partial(contest, robust_pca)),
    "lle_swiss_roll": ("locally linear embedding of a swiss roll", partial(contest, lle_swiss_roll)),
    "lle_mnist": ("locally linear embedding of MNIST", partial(contest, lle_mnist)),
    "boosting_tall": ("Histogram boosting on many rows", partial(contest, boosting_tall)),
    "boosting_small": ("Histogram boosting on few rows", partial(contest, boosting_small)),
    "boosting_predict": ("answers of histogram boosting", partial(contest, boosting_predict)),
    "kmeans_mnist": ("k-means on MNIST", partial(contest, kmeans_mnist)),
    "kmeans_tall": ("k-means on many rows", partial(contest, kmeans_tall)),
    "kmeans_many": ("k-means with many clusters", partial(contest, kmeans_many)),
    "mixture_tall": ("Gaussian mixtures on many rows", partial(contest, mixture_tall)),
    "mixture_wide": ("Gaussian mixtures of many components", partial(contest, mixture_wide)),
    "mixture_missing": ("what missing entries cost a Gaussian mixture", mixture_missing),
    "logistic_tall": ("logistic regression on many rows", partial(contest, logistic_tall)),
    "softmax_mnist": ("multinomial logistic regression on MNIST", partial(contest, softmax_mnist)),
    "svm_tall": ("linear support vector machine on many rows", partial(contest, svm_tall)),
    "svm_mnist": ("linear support vector machine on MNIST", partial(contest, svm_mnist)),
    "svm_sparse": ("linear support vector machine on sparse rows", partial(contest, svm_sparse)),
    "joint_svm_mnist": ("joint multiclass support vector machine on MNIST", partial(contest, joint_svm_mnist)),
    "rbf_million": ("RBF kernel machine on a million rows", partial(contest, rbf_million)),
    "svc_mnist": ("kernel support vector machine on MNIST", partial(contest, svc_mnist)),
    "svc_predict": ("decision values of a kernel machine on MNIST", partial(contest, svc_predict)),
    "svc_narrow": ("kernel support vector machine on few columns", partial(contest, svc_narrow)),
    "svc_linear": ("kernel support vector machine of a linear kernel", partial(contest, svc_linear)),
    "svc_classes": ("kernel support vector machines of ten classes on few rows", partial(contest, svc_classes)),
    "best_tree": ("the best trees of depth 2 and 3 of a million rows", partial(contest, best_tree)),
    "tree_tall": ("a single decision tree of 100,000 rows", partial(contest, tree_tall)),
    "forest_tall": ("random forests of 100,000 rows", partial(contest, forest_tall)),
    "forest_mnist": ("random forests on MNIST", partial(contest, forest_mnist)),
    "networks_mnist": ("networks on MNIST", partial(contest, networks_mnist)),
    "networks_quality": ("what networks learn of MNIST", networks_quality),
    "network_bounds": ("the bound over networks of any width on five problems", network_bounds),
    "network_epochs": ("an epoch of networks beside PyTorch, JAX and scikit-learn", network_epochs),
    "network_tables": ("the tabular preset of networks on ten tables", network_tables),
    "naive_bayes_mnist": ("naive Bayes on MNIST", partial(contest, naive_bayes_mnist)),
    "poisson_tall": ("Poisson regression on many rows", partial(contest, poisson_tall)),
    "gamma_tall": ("gamma regression on many rows", partial(contest, gamma_tall)),
    "poisson_errors": ("Poisson regression with standard errors", partial(contest, poisson_errors)),
    "logistic_errors": ("logistic regression with standard errors", partial(contest, logistic_errors)),
    "elastic_path": ("logistic regression along a path of penalties", partial(contest, elastic_path)),
    "wide_sparse": ("L1 penalties on wide sparse rows", partial(contest, wide_sparse)),
    "adaboost_stumps": ("AdaBoost with stumps", partial(contest, adaboost_stumps)),
    "additive_classes": ("an additive model of two classes", partial(contest, additive_classes)),
    "ppca_missing": ("what missing entries cost probabilistic PCA", ppca_missing),
    "small_tables": ("fits and answers of small tables", small_tables),
    "predict": ("answers for many rows", predict),
    "import_time": ("what a user waits for first", import_time),
    "cold_start": ("first fits of every estimator with nothing compiled", cold_start),
    "boosting_memory": ("histogram boosting larger than memory", boosting_memory),
    "out_of_core": ("larger than memory", out_of_core),
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*BENCHMARKS, "all", "list", "summary"],
                        help="benchmarks, or all, list, summary (of the results on record)")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help=f"sizes divided by {QUICK}, two rounds: a smoke run")
    parser.add_argument("--repeat", type=int, metavar="N", help="warm calls of each contestant (5; with --quick 2)")
    parser.add_argument("--peers", default="", metavar="A,B", help="only peers whose name contains one of these")
    parser.add_argument(
        "--memory", action="store_true", help="measure each fit's peak memory too, in child processes"
    )
    parser.add_argument("--slow", action="store_true", help="run peers that take minutes a fit too")
    parser.add_argument("--budget", type=float, default=60.0, metavar="S", help="seconds of calls a contestant gets")
    parser.add_argument(
        "--mnist", type=Path, metavar="DIR", help="folder of MNIST's IDX .gz files (or CERTIFIT_MNIST)"
    )
    parser.add_argument("--scratch", type=Path, default=Path("/tmp"), metavar="DIR", help="where out_of_core writes")
    parser.add_argument("--keep", action="store_true", help="keep what out_of_core wrote")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="where the JSON goes")
    parser.add_argument("--history", type=Path, default=HISTORY, metavar="DIR", help="where the record is kept")
    parser.add_argument("--busy", action="store_true", help="measure although other programs use the machine")
    parser.add_argument("--docs", type=Path, default=DOCS, metavar="FILE", help="page whose tables are rewritten")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["hunt"]:
        return hunts.main(arguments[1:])
    if arguments[:1] == ["faults"]:
        return faults.main(arguments[1:])
    asked = parse(arguments)
    if "list" in asked.names:
        print("\n".join(f"{name:<14} {title}" for name, (title, _) in BENCHMARKS.items()))
        return 0
    if "summary" in asked.names:
        print(summary(asked.results).markdown())
        write_summaries(asked.results, asked.docs)
        return 0
    names = list(BENCHMARKS) if "all" in asked.names else asked.names
    if len(names) > 1:  # a process for each: one benchmark's memory and threads do not weigh on the next
        flags = [a for a in arguments if a not in asked.names]
        runs = [subprocess.run([sys.executable, "-m", "benchmarks", name, *flags], check=False) for name in names]
        return int(any(run.returncode for run in runs))
    name = names[0]
    options = Options(
        shrink=QUICK if asked.quick else 1,
        repeat=asked.repeat or (2 if asked.quick else 5),
        peers=tuple(part for part in asked.peers.split(",") if part),
        memory=asked.memory,
        slow=asked.slow,
        budget=asked.budget,
        mnist=asked.mnist,
        scratch=asked.scratch,
        keep=asked.keep,
    )
    trial = asked.quick or bool(asked.peers)
    if not trial and not asked.busy and (busy := busy_share()) > MOST_BUSY:
        say(f"other programs use {busy:.0%} of this machine; wanted at most {MOST_BUSY:.0%}. Stop them, or --busy")
        return 2
    title, run = BENCHMARKS[name]
    report = run(title, options)
    print(report.markdown(name))
    path = write(report, name, trial=trial, results=asked.results, docs=asked.docs)
    say(f"saved {path}")
    if not trial:
        say(keep_record(plain(report.to_dict(name)), asked.history))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
