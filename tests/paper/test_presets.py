"""The presets are the paper's tables of hyper-parameters, transcribed here by hand."""

from dataclasses import replace

from softcount.bonuses.episodic import EpisodicBonusConfig
from softcount.bonuses.ngu import NguConfig
from softcount.bonuses.normalise import NormaliserConfig
from softcount.config import with_fields
from softcount.presets import ATARI, ATARI_LETTER, DM_HARD_8, LAPTOP, LAPTOP_ATARI, suited
from softcount.representations.rnd import RndConfig
from softcount.torsos import TORSOS, DqnConfig

TABLES = {
    # name of the row                     Atari               DM-HARD-8
    "memory size": (50_000, 200_000),
    "discount": (0.999, 0.997),
    "insertion probability": (0.05, 0.2),
    "relative tolerance": (0.2, 0.2),
    "reward constant": (0.01, 0.01),
    "decay rate": (0.9999, 0.9999),
    "neighbors": (20, 20),
    "IM reward scale": (1.0, 0.1),
    "max discount": (0.9997, 0.997),
    "min discount": (0.97, 0.97),
    "replay period": (80, 40),
    "trace length": (160, 80),
    "replay ratio": (6.0, 2.0),
    "replay capacity": (200_000, 5000),
    "batch size": (64, 128),
    "RL learning rate": (3e-4, 1e-4),
    "embedding learning rate": (6e-4, 3e-4),
    "RL weight decay": (0.05, 0.1),
    "embedding weight decay": (0.05, 0.1),
}

AGENT = {
    # not in the paper's tables: MEME's values and, where none are known, what was decided
    "mixtures": 16,
    "LSTM units": 512,
    "head units": 512,
    "return": ("soft", 0.95, 0.01, 0.25),  # form, λ, κ, temperature of the policy
    "rescaling": 1e-3,
    "trust region": 2.0,
    "least sigma": 0.01,
    "cross-mixture weight": 0.5,
    "distillation": (1.0, 1e-4, 0.5),  # weight, ε, limit of the KL
    "priority": (0.9, 0.9),  # share of the maximum, exponent
    "importance exponent": 0.0,
    "target period": 1500,
    "Adam": (0.9, 0.999, 1e-8),
    "gradient norm": 40.0,
    "epsilon": (0.4, 7.0, 0.01),  # base and power of the actors' ladder, evaluator
    "bandit": ("discounted", 0.999, 0.5, 1.0),
    "embedding Adam": (0.9, 0.999, 1e-8),
    "embedding": 32,
}
CASM = {
    "layers": 2,
    "size": 128,
    "heads": 4,
    "MLP": (512,),
    "mask": 0.8,
    "masks": 4,
    "action": 32,
    "head": (128,),
}


def agent_rows(config):
    meme, loss, bandit, trainer = config.meme, config.meme.loss, config.meme.bandit, config.trainer
    return {
        "mixtures": meme.network.num_mixtures,
        "LSTM units": meme.network.core_size if meme.network.core == "lstm" else None,
        "head units": meme.network.head_size,
        "return": (loss.return_form, loss.trace_discount, loss.soft_tolerance, loss.policy_temperature),
        "rescaling": loss.rescale_epsilon,
        "trust region": loss.trust_region,
        "least sigma": loss.sigma_floor if loss.normalise else None,
        "cross-mixture weight": loss.behaviour_weight if loss.cross_mixture else 1.0,
        "distillation": (loss.distillation_weight, loss.distillation_epsilon, loss.kl_limit),
        "priority": (loss.priority_max_weight, config.meme.replay.priority_exponent),
        "importance exponent": config.meme.importance_exponent,
        "target period": meme.target_update_period,
        "Adam": (*meme.optimiser.betas, meme.optimiser.epsilon),
        "gradient norm": meme.optimiser.max_grad_norm,
        "epsilon": (meme.epsilon_base, meme.epsilon_power, meme.evaluation_epsilon),
        "bandit": (bandit.kind, bandit.discount, bandit.epsilon, bandit.bonus),
        "embedding Adam": (*trainer.optimiser.betas, trainer.optimiser.epsilon),
        "embedding": config.representation.embedding.dim,
    }


def casm_rows(config):
    casm = config.representation.casm
    net = casm.transformer
    return {
        "layers": net.num_layers,
        "size": net.width,
        "heads": net.num_heads,
        "MLP": net.hidden_sizes,
        "mask": casm.mask_rate,
        "masks": casm.num_masks,
        "action": casm.action_dim,
        "head": casm.hidden_sizes,
    }


def rows(config):
    return {
        "memory size": config.recode.memory.size,
        "discount": config.recode.memory.count_discount,
        "insertion probability": config.recode.memory.insertion_probability,
        "relative tolerance": config.recode.memory.far_tolerance,
        "reward constant": config.recode.memory.reward_constant,
        "decay rate": round(1 - config.recode.memory.d2_step, 10),
        "neighbors": config.recode.memory.neighbours,
        "IM reward scale": config.meme.loss.beta_max,
        "max discount": config.meme.loss.discount_max,
        "min discount": config.meme.loss.discount_min,
        "replay period": config.meme.replay.period,
        "trace length": config.meme.replay.trace_length,
        "replay ratio": config.meme.replay.replay_ratio,
        "replay capacity": config.meme.replay.capacity,
        "batch size": config.meme.batch_size,
        "RL learning rate": config.meme.optimiser.learning_rate,
        "embedding learning rate": config.trainer.optimiser.learning_rate,
        "RL weight decay": config.meme.optimiser.weight_decay,
        "embedding weight decay": config.trainer.optimiser.weight_decay,
    }


def test_the_atari_preset_is_the_papers_table():
    assert rows(ATARI) == {name: values[0] for name, values in TABLES.items()}


def test_the_dm_hard_8_preset_is_the_papers_table():
    assert rows(DM_HARD_8) == {name: values[1] for name, values in TABLES.items()}


def test_each_domain_has_the_agent_of_the_papers_main_result():
    assert (ATARI.agent, ATARI.env) == ("MEME-RECODE-AP", "atari/montezuma_revenge")
    assert DM_HARD_8.agent == "MEME-RECODE-CASM"
    assert DM_HARD_8.env.startswith("dm-hard-8/")


def test_both_presets_run_the_whole_of_meme_and_the_papers_casm():
    for config in (ATARI, DM_HARD_8):
        assert agent_rows(config) == AGENT
        assert casm_rows(config) == CASM
        assert config.meme.network.torso == config.representation.embedding.torso


def test_learning_starts_when_enough_traces_are_there():
    assert (ATARI.meme.replay.min_traces, DM_HARD_8.meme.replay.min_traces) == (6250, 1000)


def test_the_torsos_are_those_of_the_tables():
    for config, stride, blocks in ((ATARI, 4, (2, 3, 4, 4)), (DM_HARD_8, 2, (2, 4, 12, 6))):
        torso = TORSOS[config.meme.network.torso]
        assert (torso.initial_stride, torso.blocks) == (stride, blocks)
        assert (torso.channels, torso.strides) == ((64, 128, 128, 64), (1, 2, 2, 2))


def test_the_papers_presets_act_on_the_policy_pay_every_arrival_and_never_relabel():
    for config in (ATARI, DM_HARD_8):
        assert config.meme.act_on == "policy"
        assert config.terminal_observations == "paid"
        assert not config.meme.relabel
        assert config.meme.network.num_mixtures == 16
        assert config.recode.normaliser == NormaliserConfig(kind="reward_std", step=1e-5)


def test_every_loss_term_is_live_on_a_laptop_too():
    loss = LAPTOP.meme.loss
    assert LAPTOP.meme.network.num_mixtures >= 4
    assert loss.trust_region is not None
    assert loss.kl_limit is not None
    assert loss.normalise
    assert loss.cross_mixture
    assert loss.distillation_weight > 0
    assert loss.return_form == "soft"
    assert loss.rescale_epsilon is not None


def test_what_the_laptop_preset_chose_for_counts_stays_with_counts():
    for agent in ("MEME-RECODE-AP", "MEME-COUNT", "MEME"):
        assert suited(LAPTOP, agent) == replace(LAPTOP, agent=agent)
    rnd, ngu, emm = (suited(LAPTOP, f"MEME-{name}") for name in ("RND", "NGU-AP", "EMM-AP"))
    for config in (rnd, ngu, emm):
        assert (config.surprise, config.ngu, config.episodic) == (None, NguConfig(), EpisodicBonusConfig())
    assert (rnd.meme.relabel, ngu.meme.relabel, emm.meme.relabel) == (True, False, False)
    assert emm.trainer == LAPTOP.trainer
    for predictor in (rnd, ngu):
        assert (predictor.trainer.schedule, predictor.trainer.acting) == ("constant", "latest")
        assert predictor.trainer.optimiser.learning_rate == 6e-4
    assert replace(rnd, agent=LAPTOP.agent, trainer=LAPTOP.trainer) == LAPTOP


def test_on_a_laptops_atari_rivals_are_paid_above_their_mean_or_have_a_beta_of_their_own():
    above_mean, own = LAPTOP_ATARI.recode.normaliser, LAPTOP_ATARI.meme.loss.beta_max
    assert above_mean.kind == "prioritised"
    names = ("RECODE-AP", "RND", "RNDonAP", "EMM-FRAME", "BYOL-Explore", "COUNT", "NGU-AP")
    config = {name: suited(LAPTOP_ATARI, f"MEME-{name}") for name in names}
    for name in ("RND", "RNDonAP"):
        surprise = config[name].surprise
        assert surprise is not None
        assert (surprise.normaliser, surprise.paid_in) == (above_mean, "acting")
    assert config["EMM-FRAME"].episodic.normaliser == above_mean
    assert config["BYOL-Explore"].surprise is None  # its own rule, which is the same
    betas = {name: config[name].meme.loss.beta_max for name in names}
    assert betas == dict.fromkeys(names[:5], own) | dict.fromkeys(names[5:], 0.2)
    assert suited(LAPTOP_ATARI, "MEME-RECODE-AP") == replace(LAPTOP_ATARI, agent="MEME-RECODE-AP")
    assert not config["NGU-AP"].meme.relabel
    assert config["RND"].meme.relabel


def test_the_papers_presets_suit_every_agent_as_they_are_but_for_the_sizes_of_ngus_predictor():
    for preset in (ATARI, DM_HARD_8):
        for agent in ("MEME-RECODE-AP", "MEME-RND", "MEME-EMM-AP"):
            assert suited(preset, agent) == replace(preset, agent=agent)
        ngu = suited(preset, "MEME-NGU-AP")
        assert ngu.representation.rnd == RndConfig(torso=DqnConfig(), outputs=128, hidden_sizes=())
        assert replace(ngu, representation=preset.representation) == replace(preset, agent="MEME-NGU-AP")
    assert suited(LAPTOP, "MEME-NGU-AP").representation == LAPTOP.representation


def test_the_presets_train_the_agents_that_the_paper_reports_there():
    assert ATARI.agent == ATARI_LETTER.agent == "MEME-RECODE-AP"
    assert DM_HARD_8.agent == "MEME-RECODE-CASM"


def test_one_time_step_is_the_fleet_unless_the_letter_is_wanted():
    assert ATARI.recode.memory.embeddings_per_step is None
    assert DM_HARD_8.recode.memory.embeddings_per_step is None
    assert with_fields(ATARI, {"recode.memory.embeddings_per_step": 1}) == ATARI_LETTER
    assert ATARI_LETTER.recode.memory.embedding_discount == 0.999
