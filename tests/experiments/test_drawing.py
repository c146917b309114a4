"""How pictures are drawn and saved."""

import numpy as np

from experiments import drawing


def test_equal_pictures_are_equal_files(tmp_path):
    def draw():
        figure = drawing.new_figure(2, 2)
        figure.subplots().plot([1, 2], [3, 4])
        return figure

    first = drawing.save_picture(draw(), "x", tmp_path / "one")
    second = drawing.save_picture(draw(), "x", tmp_path / "two")
    assert [path.name for path in first] == ["x.png", "x.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_seeds_are_drawn_with_their_mean_over_those_that_have_a_value():
    axes = drawing.new_figure(2, 2).subplots()
    drawing.draw_seeds(axes, np.array([10, 20]), np.array([[1.0, 2.0], [3.0, np.nan]]), "red", "two seeds")
    one, two, mean = (line.get_ydata() for line in axes.lines)
    np.testing.assert_array_equal(one, [1, 2])
    np.testing.assert_array_equal(two, [3])  # lines go over points that nothing is known of
    np.testing.assert_array_equal(mean, [2, 2])
    assert axes.lines[-1].get_label() == "two seeds"


def test_a_number_that_grows_ends_where_the_run_does():
    axes = drawing.new_figure(2, 2).subplots()
    drawing.draw_steps(axes, [3, 8], 20, color="red")
    assert list(axes.lines[0].get_xdata()) == [3, 8, 20]
    assert list(axes.lines[0].get_ydata()) == [1, 2, 2]


def test_a_bonus_has_one_colour_in_whatever_name_it_stands():
    first = drawing.colours_of(["MEME-RECODE-AP", "MEME-RND", "MEME"])
    second = drawing.colours_of(["none", "RND", "RECODE-AP", "COUNT"])
    assert first["MEME-RECODE-AP"] == second["RECODE-AP"] == drawing.BONUS_COLOURS["RECODE"]
    assert first["MEME-RND"] == second["RND"] == drawing.BONUS_COLOURS["RND"]
    assert first["MEME"] == second["none"] == drawing.BONUS_COLOURS["none"]
    assert len(set(drawing.BONUS_COLOURS.values())) == len(drawing.BONUS_COLOURS)


def test_two_of_one_bonus_are_told_apart_and_what_is_no_bonus_gets_other_colours():
    colours = drawing.colours_of(["RECODE, AP frozen", "RECODE, AP moving", "RNDonAP, AP frozen"])
    assert colours["RECODE, AP moving"] == drawing.lighter(colours["RECODE, AP frozen"], 0.5) == "#8db6d4"
    names = ["RECODE-AP", "discount-off", "removal-inverse"]
    assert list(drawing.colours_of(names).values()) == list(drawing.COLOURS[:3])


def test_a_legend_names_each_label_once_and_covers_no_axes():
    figure = drawing.new_figure(9, 3)
    for axes in figure.subplots(1, 2):
        axes.plot([1, 2], label="one")
        axes.plot([2, 1], label="two")
    drawing.legend_beside(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]
    figure.draw_without_rendering()
    box = legend.get_window_extent()
    assert all(axes.get_window_extent().y1 <= box.y0 for axes in figure.axes)


def test_ticks_of_long_runs_are_few_and_short():
    axes = drawing.new_figure(3, 2).subplots()
    axes.plot([0, 150_000], [0, 1])
    drawing.steps_below(axes, "age")
    axes.figure.draw_without_rendering()
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert "50k" in labels
    assert len(labels) <= 7
    assert axes.get_xlabel() == "age"
